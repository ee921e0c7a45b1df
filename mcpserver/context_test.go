package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/mcpserver"
	"github.com/continuo-log/continuo/store/storetest"
)

const team = `
name: Team
id: team
max_rounds: 1
roles:
  - {role_name: builder, display_name: Builder, system_prompt: You build.}
  - {role_name: judge, display_name: Judge, system_prompt: You judge.}
`

// crews are crews by their ids.
type crews map[string]*crew.Crew

func (c crews) Crew(id string) (*crew.Crew, error) {
	if found := c[id]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("crew %q: %w", id, continuo.ErrNotFound)
}

func (crews) Crews() ([]*crew.Crew, error) { return nil, nil }

// newCrewWorld is a world with the crew team, which has spoken in the conversation s.
func newCrewWorld(t *testing.T) *world {
	t.Helper()
	made, err := crew.Parse("team.yaml", []byte(team), crew.Known{Any: true})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldOver(t, storetest.NewMemory())
	w.engine, err = engine.New(w.log, engine.Options{
		Models: map[string]engine.Upstream{"quick": {Model: quick{}}}, Default: "quick", Crews: crews{"team": made}, StepPause: time.Nanosecond,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.server = mcpserver.New(w.engine, mcpserver.Options{Poll: 5 * time.Millisecond})
	t.Cleanup(func() { _ = w.engine.Close(t.Context()) })
	session := engine.CrewSession{Scope: continuo.Scope{ProjectID: "default"}, Crew: "team", SessionID: "s"}
	status, err := w.engine.Crews.Send(t.Context(), engine.CrewMessage{Session: session, Message: continuo.Text("Plant a tree."), Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.log.Runs().Run(t.Context(), "default", status.RunID)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range w.engine.Crews.Follow(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// What a role of a crew sees is shown as over the API, by the crew that spoke last or the one that is named.
func TestWhatARoleSees(t *testing.T) {
	w := newCrewWorld(t)
	c := w.client("default", nil)
	type context struct {
		View     string
		Messages []struct{ Role, Content string }
	}
	var seen, named context
	c.call("get_context", `{"conversation": "s", "view": "role:judge", "system": true}`, &seen)
	c.call("get_context", `{"conversation": "s", "view": "role:judge", "system": true, "crew": "team"}`, &named)
	text := fmt.Sprint(seen.Messages)
	if seen.View != "role:judge" || !strings.Contains(text, "You judge.") || !strings.Contains(text, "Assistant (Builder): It is done.") || !reflect.DeepEqual(seen, named) {
		t.Errorf("the judge sees %+v, by its crew's name %+v", seen, named)
	}
	w.newConversation("default", "plain", "Hello", "Hi")
	for _, row := range []struct{ arguments, kind, field string }{
		{`{"conversation": "s", "view": "role:"}`, "invalid_value", "view"},
		{`{"conversation": "s", "view": "role:nobody"}`, "invalid_value", "view"},
		{`{"conversation": "s", "view": "ROLE:judge"}`, "invalid_value", "view"},
		{`{"conversation": "s", "view": "role:judge", "crew": "others"}`, "not_found", "crew"},
		{`{"conversation": "s", "view": "role:judge", "crew": "../team"}`, "not_found", "crew"},
		{`{"conversation": "s", "view": "role:judge", "crew": ["team"]}`, "type_error", "crew"},
		{`{"conversation": "s", "view": "codex", "crew": "team"}`, "invalid_value", "crew"},
		{`{"conversation": "s", "crew": "team"}`, "invalid_value", "crew"},
		{`{"conversation": "s", "view": "role:judge", "model": "quick"}`, "invalid_value", "model"},
		{`{"conversation": "s", "view": "role:judge", "agent_id": "reviewer"}`, "invalid_value", "agent_id"},
		{`{"conversation": "s", "view": "role:judge", "at": 99}`, "bad_range", "at"},
		{`{"conversation": "plain", "view": "role:judge"}`, "not_found", "view"},
	} {
		c.fails("get_context", row.arguments, row.kind, row.field)
	}
}

// What is handed off of a conversation is its messages, and its text where no other form is asked for.
func TestWhatIsHandedOff(t *testing.T) {
	w := newWorld(t)
	c := w.client("default", nil)
	w.newConversation("default", "plain", "Hello", "Hi")
	var seen struct {
		View, Format, Text string
		Messages           []struct{ Role, Content string }
	}
	c.call("get_context", `{"conversation": "plain", "view": "handoff"}`, &seen)
	if seen.View != "handoff" || seen.Format != "handoff" || !strings.Contains(seen.Text, "CONVERSATION HISTORY") || !strings.Contains(seen.Text, "\n    Hello\n") {
		t.Errorf("the text: %+v", seen)
	}
	c.call("get_context", `{"conversation": "plain", "view": "handoff", "format": "openai"}`, &seen)
	if len(seen.Messages) != 2 || seen.Messages[0].Content != "Hello" {
		t.Errorf("the messages: %+v", seen)
	}
}

// The schema takes the views that the tool takes.
func TestTheSchemaOfAContext(t *testing.T) {
	tools, err := newWorld(t).client("default", nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if tool.Name != "get_context" {
			continue
		}
		schema := compile(t, "input of get_context", tool.InputSchema)
		for arguments, good := range map[string]bool{
			`{"conversation": "s", "view": "codex"}`: true, `{"conversation": "s", "view": "handoff", "format": "handoff"}`: true, `{"conversation": "s", "view": "role:judge", "crew": "team"}`: true,
			`{"conversation": "s", "view": "all"}`: false, `{"conversation": "s", "view": "role:"}`: false, `{"conversation": "s", "view": 5}`: false,
		} {
			var value any
			if err := json.Unmarshal([]byte(arguments), &value); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); (err == nil) != good {
				t.Errorf("%s: %v", arguments, err)
			}
		}
	}
}
