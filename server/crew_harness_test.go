package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
)

// crewFolder is a folder of crews, read again each time.
type crewFolder struct{ dir string }

func (b crewFolder) Crew(id string) (*crew.Crew, error) {
	file := filepath.Join(b.dir, id+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("crew %s: %w", id, continuo.ErrNotFound)
	}
	return crew.Parse(file, text, crew.Known{Any: true})
}

func (b crewFolder) Crews() (found []*crew.Crew, err error) {
	files, _ := filepath.Glob(filepath.Join(b.dir, "*.yaml"))
	for _, file := range files {
		one, problem := b.Crew(strings.TrimSuffix(filepath.Base(file), ".yaml"))
		if problem != nil {
			err = errors.Join(err, problem)
			continue
		}
		found = append(found, one)
	}
	return found, err
}

// withCrews adds the crews of testdata/crews to an engine's options, and a model that speaks for their roles.
func withCrews(options engine.Options) engine.Options {
	options.Crews, options.StepPause = crewFolder{"testdata/crews"}, time.Nanosecond
	if options.Models == nil {
		options.Models, options.Default = map[string]engine.Upstream{"actor": {Model: &fakeModel{"gpt-4o", actor}}}, "actor"
	}
	return options
}

// actor speaks for roles as their system prompts say: of the lines "say TEXT", the one behind those that it is shown
// to have said already, else it has nothing to add. Before it first speaks it calls what "call NAME ARGUMENTS" says.
// A role that a person asks to fail fails.
func actor(_ context.Context, shown []shownMessage, yield func(model.Delta) bool) error {
	name, call, lines := "", "", []string{}
	for line := range strings.Lines(shown[0].Content.String()) {
		line = strings.TrimSpace(line)
		if is, ok := strings.CutPrefix(line, "You are "); ok {
			name = strings.TrimSuffix(is, ".")
		}
		if text, ok := strings.CutPrefix(line, "call "); ok {
			call = text
		}
		if text, ok := strings.CutPrefix(line, "say "); ok {
			lines = append(lines, text)
		}
	}
	transcript, answered := "", 0
	for _, message := range shown {
		switch {
		case message.Role == "user":
			transcript += message.Content.String() + "\n\n"
		case message.Role == "assistant" && message.Content.String() != "":
			answered++
		}
	}
	if strings.Contains(transcript, "User: "+name+" must fail") || strings.Contains(transcript, "User: all must fail") {
		yield(model.Delta{Text: "I was just "})
		return &model.Error{Reason: continuo.ReasonUpstream, Status: 418, Message: "the provider said no"}
	}
	answered += strings.Count(transcript, "Assistant ("+name+"):")
	if tool, arguments, _ := strings.Cut(call, " "); call != "" && answered == 0 && shown[len(shown)-1].Role != "tool" {
		yield(model.Delta{ToolCall: &model.ToolCallDelta{ID: "call_0", Type: "function", Name: tool, Arguments: arguments, Done: true}})
		return nil
	}
	if answered >= len(lines) {
		yield(model.Delta{Text: continuo.Placeholder})
		return nil
	}
	for word := range strings.SplitAfterSeq(lines[answered], " ") {
		yield(model.Delta{Text: word})
	}
	return nil
}

// newCrewServer makes a server whose engine has crews, and a model that speaks for them.
func newCrewServer(t *testing.T) (*engine.Engine, *server) {
	t.Helper()
	made := newEngine(t, withCrews(engine.Options{Tools: tool.Set{upper{}}}))
	return made, New(made, Options{}).(*server)
}

// sendToCrew says something to a crew, and returns when the crew rests, with its whole stream.
func sendToCrew(t *testing.T, s *server, crewID, session, message string, header ...string) []runFrame {
	t.Helper()
	body := rawjson.MustMarshal(map[string]string{"session_id": session, "message": message})
	answer := ask(t, s, "POST", "/api/crews/"+crewID+"/messages", string(body), append(header, "Accept", "text/event-stream")...)
	if answer.status != 200 {
		t.Fatalf("status %d: %s", answer.status, answer.body)
	}
	return crewFrames(t, answer.body)
}

// waitForIdleCrew waits until a crew is idle, and returns its state.
func waitForIdleCrew(t *testing.T, s *server, crewID, session string) engine.CrewStatus {
	t.Helper()
	return endOf(t, crewFrames(t, ask(t, s, "GET", "/api/crews/"+crewID+"/events?session_id="+session, "").body))
}

// crewFrames splits a crew's stream, and holds its form and its data against openapi.json.
func crewFrames(t *testing.T, stream []byte) []runFrame {
	t.Helper()
	return framesAs(t, stream, "CrewStatus", map[string]string{"turn": "CrewTurnEvent", "delta": "CrewTextEvent", "reasoning": "CrewTextEvent"})
}

func endOf(t *testing.T, frames []runFrame) (status engine.CrewStatus) {
	t.Helper()
	if end := last(frames); end.kind != "end" || json.Unmarshal(end.data, &status) != nil {
		t.Fatalf("the last event is %s", end.raw)
	}
	return status
}

// textOf writes what was said in a stream's entries, one on a line: who, and what.
func textOf(t *testing.T, frames []runFrame) string {
	t.Helper()
	var text strings.Builder
	for _, frame := range frames {
		var entry continuo.Entry
		if frame.kind != "entry" {
			continue
		}
		if err := json.Unmarshal(frame.data, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Role == continuo.System {
			continue
		}
		who := string(entry.Role)
		if entry.Author != nil {
			who = entry.Author.DisplayName
		}
		fmt.Fprintf(&text, "%s: %s\n", who, entry.Content.String())
	}
	return text.String()
}

// exerciseCrews sends a message to a crew without a stream, and resumes it: the state then depends on timing.
func exerciseCrews(t *testing.T) {
	t.Helper()
	_, handler := newCrewServer(t)
	ask(t, handler, "POST", "/api/crews/team/messages", `{"message": "all must fail"}`).into(202, &struct{}{})
	waitForIdleCrew(t, handler, "team", "crew:team")
	ask(t, handler, "POST", "/api/crews/team/resume", "").into(202, &struct{}{})
	waitForIdleCrew(t, handler, "team", "crew:team")
}
