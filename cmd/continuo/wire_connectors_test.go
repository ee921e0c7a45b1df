package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model"
)

func TestConnectors(t *testing.T) {
	for name, c := range map[string]config.ConnectorConfig{
		"command": {Name: "c", Command: []string{"no-such-program-anywhere"}},
		"acp":     {Name: "c", ACP: []string{"no-such-program-anywhere"}},
	} {
		m := connector(c, time.Minute)
		if info := m.Info(); info.Protocol != model.ProtocolPrompt || info.Name != "c" || info.Provider != name {
			t.Errorf("%s: it is %+v", name, info)
		}
		for _, err := range m.Stream(t.Context(), []byte(`{"prompt":"hello"}`)) {
			if err == nil || !strings.HasSuffix(err.Error(), "correct connectors.c."+name) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell to ask")
	}
	m := connector(config.ConnectorConfig{
		Name: "c", Command: []string{"sh", "-c", `printf '%s %s' "$GIVEN" "$(cat)"`}, Env: map[string]string{"GIVEN": "a b"},
	}, time.Minute)
	text := ""
	for delta, err := range m.Stream(t.Context(), []byte(`{"prompt":"hello"}`)) {
		if text += delta.Text; err != nil {
			t.Error(err)
		}
	}
	if text != "a b hello" {
		t.Errorf("got %q", text)
	}
}

// answerOf is what a connector answers to a message.
func answerOf(t *testing.T, m model.Model) (text string, err error) {
	t.Helper()
	for delta, failed := range m.Stream(t.Context(), []byte(`{"prompt":"hello"}`)) {
		text, err = text+delta.Text, failed
	}
	return text, err
}

// An agent at work on a task has the time of such work unless its connector has one of its own, and its program knows both ids.
// Who else speaks to it has the time of a turn.
func TestConnectorsAtWork(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell to ask")
	}
	for name, test := range map[string]struct {
		own, turn, work time.Duration
		chats, works    bool
	}{
		"a short turn":      {0, 1, time.Minute, false, true},
		"short work":        {0, time.Minute, 1, true, false},
		"a time of its own": {time.Minute, 1, 1, true, true},
		"too little of it":  {1, time.Minute, time.Minute, false, false},
	} {
		settings := &config.Config{Connectors: map[string]config.ConnectorConfig{"c": {
			Name: "c", Command: []string{"sh", "-c", `printf '%s|%s|%s' "$GIVEN" "$CONTINUO_TASK_ID" "$CONTINUO_AGENT_ID"`}, Env: map[string]string{"GIVEN": "a b"}, Timeout: test.own,
		}}}
		settings.Turn.Timeout, settings.Handoff.AgentTimeout = test.turn, test.work
		models := map[string]engine.Upstream{}
		modelWiring{telemetry: &telemetry{}}.addConnectors(settings, models)
		m := models["c"].Model
		if text, err := answerOf(t, m); (err == nil) != test.chats || err == nil && text != "a b||" {
			t.Errorf("%s: it says %q, %v", name, text, err)
		}
		if text, err := answerOf(t, m.(engine.Connector).AtWork("task_1", "agent_1")); (err == nil) != test.works || err == nil && text != "a b|task_1|agent_1" {
			t.Errorf("%s: at work it says %q, %v", name, text, err)
		}
	}
}

// An agent that remembers does so for crews, and gets its task as any.
func TestConnectorsKeepTheirSessions(t *testing.T) {
	settings := &config.Config{Connectors: map[string]config.ConnectorConfig{
		"agent": {Name: "agent", ACP: []string{"no-such-program-anywhere"}}, "command": {Name: "command", Command: []string{"no-such-program-anywhere"}},
	}}
	models := map[string]engine.Upstream{}
	modelWiring{telemetry: &telemetry{}}.addConnectors(settings, models)
	for name, upstream := range models {
		if _, ok := upstream.Model.(model.Sessions); ok != (name == "agent") {
			t.Errorf("%s has sessions: %v", name, ok)
		}
		if _, ok := upstream.Model.(engine.Connector); !ok {
			t.Errorf("%s cannot be told its task", name)
		}
	}
}
