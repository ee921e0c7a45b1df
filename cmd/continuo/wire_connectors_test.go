package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model"
)

func TestConnectors(t *testing.T) {
	for name, c := range map[string]config.ConnectorConfig{
		"command": {Name: "c", Command: []string{"no-such-program-anywhere"}},
		"acp":     {Name: "c", ACP: []string{"no-such-program-anywhere"}},
	} {
		m := connector(c, config.TurnConfig{Timeout: time.Minute})
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
	}, config.TurnConfig{Timeout: time.Minute})
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
