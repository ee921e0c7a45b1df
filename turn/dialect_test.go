package turn_test

import (
	"encoding/json"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// refuses is an answer with a 400 in a provider's words.
func refuses(text string) []any {
	return []any{&model.Error{Reason: continuo.ReasonUpstream, Status: 400, Message: "127.0.0.1 answered 400 Bad Request: " + text}}
}

// rolesOf are the roles of a request's messages.
func rolesOf(t *testing.T, body string) (roles []string) {
	t.Helper()
	var request openaichat.Request
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	for _, raw := range request.Messages {
		var message openaichat.InputMessage
		if err := json.Unmarshal(raw, &message); err != nil {
			t.Fatal(err)
		}
		roles = append(roles, message.Role)
	}
	return roles
}

// isStrict reports whether a request suits strict templates.
func isStrict(t *testing.T, body string) bool {
	t.Helper()
	var request openaichat.Request
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	return len(render.CheckOpenAIChatStrict(request.Messages)) == 0
}

// The words of templates and servers that refuse a sequence of roles, and what suits them.
var refusedRoles = map[string]continuo.Roles{
	"Conversation roles must alternate user/assistant/user/assistant/...":                                    continuo.RolesStrict,
	"After the optional system message, conversation roles must alternate user/assistant/user/assistant/...": continuo.RolesStrict,
	"System message must be at the beginning.":                                                               continuo.RolesStrict,
	"Error rendering prompt with jinja template: \"roles must alternate user/assistant\"":                    continuo.RolesStrict,
	"Unexpected role 'user' after role 'tool'":                                                               continuo.RolesStrict,
	"Only user and assistant roles are supported!":                                                           continuo.RolesNoSystem,
	"System role not supported":                                                                              continuo.RolesNoSystem,
	`Jinja Exception: System role not supported (raise_exception)`:                                           continuo.RolesNoSystem,
}

func TestARefusedSequenceOfRolesIsSentInStrictForm(t *testing.T) {
	for text, want := range refusedRoles {
		t.Run(text, func(t *testing.T) {
			h := newHouse(t, refuses(text), textAnswer("Hello."), textAnswer("Again."))
			h.runner.System, h.runner.Speaker = []string{"be brief", "be kind"}, model.NewSpeaker(model.Dialect{}, model.Fixed{})
			if last := h.send("Hi."); last.Kind != turn.Finished {
				t.Fatalf("last event: %+v", last.Entry.Error)
			}
			h.send("Once more.")
			if got := h.runner.Speaker.Dialect().Roles; got != want {
				t.Errorf("learned %q, want %q", got, want)
			}
			if len(h.model.bodies) != 3 || isStrict(t, h.model.bodies[0]) || !isStrict(t, h.model.bodies[1]) || !isStrict(t, h.model.bodies[2]) {
				t.Errorf("sent %q", h.model.bodies)
			}
			if first := rolesOf(t, h.model.bodies[1])[0]; (first == "system") != (want == continuo.RolesStrict) {
				t.Errorf("the first message is of the %s", first)
			}
			if log := h.entries(); len(log) != 4 {
				t.Errorf("the log has %d entries", len(log))
			}
			h.checkReplays()
		})
	}
}

func TestTheRefusalIsReportedAndTheFormIsTriedOnce(t *testing.T) {
	h := newHouse(t, refuses("roles must alternate"), refuses("roles must alternate"), textAnswer("never"))
	h.runner.Speaker = model.NewSpeaker(model.Dialect{}, model.Fixed{})
	var kinds []turn.Kind
	for event, err := range h.follow(t.Context(), turn.Input{Message: continuo.Text("Hi.")}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, event.Kind)
		if event.Kind == turn.Rephrased && (event.Attempt.Round.RequestSHA256 == "" || event.Attempt.Error.ProviderStatus != 400) {
			t.Errorf("the event has %+v", event.Attempt)
		}
	}
	want := []turn.Kind{turn.Started, turn.Planned, turn.Rephrased, turn.Planned, turn.Answered, turn.Failed}
	if len(kinds) != len(want) || kinds[2] != want[2] || kinds[5] != want[5] {
		t.Errorf("events %v, want %v", kinds, want)
	}
	if len(h.model.bodies) != 2 {
		t.Errorf("%d requests", len(h.model.bodies))
	}
}

func TestAFormThatIsSetStaysAsItIs(t *testing.T) {
	for _, roles := range []continuo.Roles{continuo.RolesFree, continuo.RolesStrict} {
		h := newHouse(t, refuses("System role not supported"), textAnswer("never"))
		h.runner.Speaker = model.NewSpeaker(model.Dialect{Roles: roles}, model.Fixed{Roles: true})
		if last := h.send("Hi."); last.Kind != turn.Failed || len(h.model.bodies) != 1 {
			t.Errorf("%q: %d requests, last %s", roles, len(h.model.bodies), last.Kind)
		}
	}
}

func TestOtherRefusalsAreNoneOfRoles(t *testing.T) {
	for _, text := range []string{"messages with role 'tool' must be a response to a preceding message with 'tool_calls'", "model not found", "Incorrect API key provided"} {
		h := newHouse(t, refuses(text), textAnswer("never"))
		h.runner.Speaker = model.NewSpeaker(model.Dialect{}, model.Fixed{})
		if h.send("Hi."); len(h.model.bodies) != 1 {
			t.Errorf("%s: %d requests", text, len(h.model.bodies))
		}
	}
}

// formats are the types of the response formats that requests asked for.
func formats(t *testing.T, m *script) (types []string) {
	t.Helper()
	for _, body := range m.bodies {
		var request struct {
			ResponseFormat openaichat.ResponseFormat `json:"response_format"`
		}
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			t.Fatal(err)
		}
		types = append(types, request.ResponseFormat.Type)
	}
	return types
}

func TestAnAnswersSchemaIsSentInTheModelsForm(t *testing.T) {
	refused := refuses("'response_format.type' must be 'text'")
	schema := &turn.AnswerSchema{Name: "a.step", Schema: json.RawMessage(`{"type":"object"}`)}
	tools := tool.Set{echo{name: "echo"}}
	for name, c := range map[string]struct {
		dialect model.Dialect
		answer  *turn.AnswerSchema
		tools   tool.Set
		answers [][]any
		want    string
	}{
		"by schema":               {model.Dialect{Structured: model.StructuredSchema}, schema, nil, [][]any{textAnswer("{}"), textAnswer("{}")}, "json_schema json_schema"},
		"by object":               {model.Dialect{Structured: model.StructuredObject}, schema, nil, [][]any{textAnswer("{}"), textAnswer("{}")}, "json_object json_object"},
		"off":                     {model.Dialect{}, schema, nil, [][]any{textAnswer("{}"), textAnswer("{}")}, " "},
		"no schema":               {model.Dialect{Structured: model.StructuredSchema}, nil, nil, [][]any{textAnswer("{}"), textAnswer("{}")}, " "},
		"with tools":              {model.Dialect{Structured: model.StructuredSchema}, schema, tools, [][]any{textAnswer("{}"), textAnswer("{}")}, " "},
		"with tools all the same": {model.Dialect{Structured: model.StructuredSchema, StructuredWithTools: true}, schema, tools, [][]any{textAnswer("{}"), textAnswer("{}")}, "json_schema json_schema"},
		"refused":                 {model.Dialect{Structured: model.StructuredSchema}, schema, nil, [][]any{refused, refused, textAnswer("{}"), textAnswer("{}")}, "json_schema json_object  "},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, c.answers...)
			h.runner.Speaker, h.runner.Answer, h.runner.Tools = model.NewSpeaker(c.dialect, model.Fixed{Roles: true}), c.answer, c.tools
			for range 2 {
				if last := h.send("Go."); last.Kind != turn.Finished {
					t.Fatalf("last event: %+v", last.Entry.Error)
				}
			}
			if got := strings.Join(formats(t, h.model), " "); got != c.want {
				t.Errorf("asked for %q, want %q", got, c.want)
			}
			h.checkReplays()
		})
	}
}

func TestARefusalOfAFormThatWasNotSentIsReported(t *testing.T) {
	h := newHouse(t, refuses("response_format is not supported"), textAnswer("never"))
	h.runner.Speaker = model.NewSpeaker(model.Dialect{Structured: model.StructuredSchema}, model.Fixed{})
	if last := h.send("Go."); last.Kind != turn.Failed || len(h.model.bodies) != 1 {
		t.Errorf("%d requests, last %s", len(h.model.bodies), last.Kind)
	}
}
