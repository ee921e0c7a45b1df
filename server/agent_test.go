package server

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// recordingModel is a model that keeps the bytes of its requests.
type recordingModel struct {
	*fakeModel
	mu     sync.Mutex
	bodies [][]byte
}

func (r *recordingModel) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	r.mu.Lock()
	r.bodies = append(r.bodies, bytes.Clone(body))
	r.mu.Unlock()
	return r.fakeModel.Stream(ctx, body)
}

// sentRequest is a request, cut into its system messages, its other messages, and everything else.
type sentRequest struct {
	System   []string
	Messages []string // as they stand there
	Rest     string
	Tools    []string
}

func parseSent(t *testing.T, body []byte) sentRequest {
	t.Helper()
	var fields struct {
		Messages json.RawMessage
		Tools    []struct{ Function struct{ Name string } }
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(fields.Messages, &messages); err != nil {
		t.Fatal(err)
	}
	s := sentRequest{Rest: strings.Replace(string(body), string(fields.Messages), "", 1)}
	for _, tool := range fields.Tools {
		s.Tools = append(s.Tools, tool.Function.Name)
	}
	for _, raw := range messages {
		var message shownMessage
		if err := json.Unmarshal(raw, &message); err != nil {
			t.Fatal(err)
		}
		if message.Role == "system" && len(s.Messages) == 0 {
			s.System = append(s.System, message.Content.String())
		} else {
			s.Messages = append(s.Messages, string(raw))
		}
	}
	return s
}

// newest is the request that was sent last.
func (r *recordingModel) newest(t *testing.T) sentRequest {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bodies) == 0 {
		t.Fatal("no request was sent")
	}
	return parseSent(t, r.bodies[len(r.bodies)-1])
}

func newRecordingModel() *recordingModel {
	return &recordingModel{fakeModel: &fakeModel{"gpt-4o", obedient}}
}

const adasPersona = "You are Ada, a reviewer."

// withAgents is the options of an engine with a recording model, another one, and agents.
func withAgents(first, second model.Model) engine.Options {
	return engine.Options{
		Models: map[string]engine.Upstream{"first": {Model: first}, "second": {Model: second}}, Default: "first",
		Agents: map[string]engine.Agent{
			"ada":    {ID: "ada", Name: "Ada", Persona: adasPersona},
			"lender": {ID: "lender", Persona: "You are the lender.", Model: "second", View: "codex", Tools: &tool.Policy{Otherwise: tool.Deny}, MaxOutputTokens: 77, Budget: window.Limits{Messages: 3}},
		},
		Tools: tool.Set{upper{}},
	}
}

// Whatever switches the mode, the request that comes next has other system messages, and everything else of
// it is byte for byte what the request before had, with what was said since at the end.
func TestAModeChangesTheSystemMessagesAndNothingElse(t *testing.T) {
	upstream := newRecordingModel()
	e := newEngine(t, withAgents(upstream, newRecordingModel()))
	handler := New(e, Options{})
	prompts := prompt.Prompts{Dir: "testdata/prompts"}
	sendMessage(t, handler, "s", "hello")
	sendMessage(t, handler, "s", "use the tool: abc and much")
	ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "fail: upstream"}`).failed(502, "llm_error", "")
	before := upstream.newest(t)
	for _, step := range []struct {
		patch, chat string // members of the bodies; "" for no PATCH
		mode        continuo.Mode
		persona     string
	}{
		{``, ``, continuo.ModeChat, ""},
		{`"active_mode": "agent"`, ``, continuo.ModeAgent, ""},
		{`"mode": "run"`, ``, continuo.ModeRun, ""},
		{`"active_agent": "ada"`, ``, continuo.ModeRun, adasPersona},
		{`"active_mode": "chat"`, ``, continuo.ModeChat, ""},
		{``, `, "mode": "agent"`, continuo.ModeAgent, adasPersona},
		{``, ``, continuo.ModeAgent, adasPersona},
		{``, `, "mode": "chat", "agent_id": "ada"`, continuo.ModeChat, ""},
		{``, `, "agent_id": "ada"`, continuo.ModeAgent, adasPersona},
		{`"active_agent": ""`, ``, continuo.ModeAgent, ""},
		{``, `, "mode": "chat"`, continuo.ModeChat, ""},
	} {
		what := step.patch + step.chat
		if step.patch != "" {
			var changed continuo.Conversation
			ask(t, handler, "PATCH", "/api/conversations/s", "{"+step.patch+"}").into(200, &changed)
		}
		var answer chatReply
		ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "and now?"`+step.chat+`}`).into(200, &answer)
		now := upstream.newest(t)
		want, err := prompts.System(step.mode, step.persona)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(now.System, want) {
			t.Errorf("after %s the system messages are %q, want %q", what, now.System, want)
		}
		if now.Rest != before.Rest || len(now.Messages) <= len(before.Messages) || !slices.Equal(now.Messages[:len(before.Messages)], before.Messages) {
			t.Errorf("after %s the request is\n%+v\nafter\n%+v", what, now, before)
		}
		before = now
	}
	checkNoSystemPrompt(t, handler)
}

// checkNoSystemPrompt checks that none of the system messages of a request is in the log of s.
func checkNoSystemPrompt(t *testing.T, handler http.Handler) {
	t.Helper()
	entries := entriesOf(t, handler, "s")
	checkLog(t, entries)
	if len(entries) < 20 {
		t.Fatalf("there are only %d entries: the test shows nothing", len(entries))
	}
	for i := range entries {
		entry := string(rawjson.MustMarshal(entries[i]))
		for _, text := range []string{"Be brief.", "Do the step.", "Use tools when needed.", adasPersona, "- active: "} {
			if entries[i].Role == continuo.System || strings.Contains(entry, text) {
				t.Errorf("entry %d has a system prompt: %s", entries[i].Seq, entry)
			}
		}
	}
}

// The conversation remembers its mode and its agent, whichever call set them.
func TestAConversationKeepsItsModeAndAgent(t *testing.T) {
	handler := New(newEngine(t, withAgents(newRecordingModel(), newRecordingModel())), Options{})
	var made continuo.Conversation
	ask(t, handler, "POST", "/api/conversations", `{"key": "s", "active_mode": "run", "active_agent": "ada"}`).into(201, &made)
	if made.ActiveMode != continuo.ModeRun || made.ActiveAgent != "ada" {
		t.Errorf("created as %+v", made)
	}
	for _, step := range []struct {
		method, target, body string
		mode                 continuo.Mode
		agent                string
	}{
		{"POST", "/chat", `{"session_id": "s", "message": "a", "mode": "chat"}`, continuo.ModeChat, "ada"},
		{"POST", "/chat", `{"session_id": "s", "message": "a", "agent_id": "lender"}`, continuo.ModeAgent, "lender"},
		{"PATCH", "/api/conversations/s", `{"active_agent": "ada"}`, continuo.ModeAgent, "ada"},
		{"PATCH", "/api/conversations/s", `{"title": "t"}`, continuo.ModeAgent, "ada"},
		{"PATCH", "/api/conversations/s", `{"active_agent": "", "mode": "run"}`, continuo.ModeRun, ""},
		{"POST", "/chat", `{"session_id": "s", "message": "a", "agent_id": "ada", "mode": "run"}`, continuo.ModeRun, "ada"},
	} {
		if answer := ask(t, handler, step.method, step.target, step.body); answer.status != 200 {
			t.Fatalf("%s: %s", step.body, answer.body)
		}
		var now continuo.Conversation
		ask(t, handler, "GET", "/api/conversations/s", "").into(200, &now)
		if now.ActiveMode != step.mode || now.ActiveAgent != step.agent {
			t.Errorf("after %s the conversation is in mode %s with the agent %q, want %s, %q", step.body, now.ActiveMode, now.ActiveAgent, step.mode, step.agent)
		}
	}
	var fork continuo.Conversation
	ask(t, handler, "POST", "/api/conversations/s/fork", `{}`).into(201, &fork)
	if fork.ActiveMode != continuo.ModeRun || fork.ActiveAgent != "ada" {
		t.Errorf("a fork begins as %+v", fork)
	}
	for _, entry := range entriesOf(t, handler, "s") {
		if entry.Role == continuo.Assistant && (entry.AgentID == "") != (entry.Mode == continuo.ModeChat) {
			t.Errorf("entry %d of mode %s was answered by %q", entry.Seq, entry.Mode, entry.AgentID)
		}
	}
}

// An agent that is named with the mode chat lends its model, tools, view and budget, but not its persona.
func TestAnAgentLendsWhatItHas(t *testing.T) {
	first, second := newRecordingModel(), newRecordingModel()
	handler := New(newEngine(t, withAgents(first, second)), Options{})
	for range 3 {
		sendMessage(t, handler, "s", "hello")
	}
	for _, mode := range []string{"chat", "agent", "run"} {
		asked := len(second.bodies)
		var answer chatReply
		ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "a", "agent_id": "lender", "mode": "`+mode+`"}`).into(200, &answer)
		if len(second.bodies) != asked+1 {
			t.Fatalf("%s: the agent's model was not asked", mode)
		}
		got := second.newest(t)
		if shown := slices.Contains(got.System, "You are the lender."); shown != (mode != "chat") {
			t.Errorf("%s: the persona is shown: %v", mode, shown)
		}
		if answer.Context.View != "codex" || len(got.Tools) != 0 || len(got.Messages) > 3 || !strings.Contains(got.Rest, "77") {
			t.Errorf("%s: view %s, tools %v, %d messages, %s", mode, answer.Context.View, got.Tools, len(got.Messages), got.Rest)
		}
	}
	var answer chatReply
	ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "a", "view": "continuity", "model": "first"}`).into(200, &answer)
	if got := first.newest(t); answer.Context.View != "continuity" || !slices.Contains(got.System, "You are the lender.") {
		t.Errorf("a request's own view and model do not count: %s, %q", answer.Context.View, got.System)
	}
}

// The context shows what an agent's request would hold.
func TestTheContextOfAnAgent(t *testing.T) {
	handler := New(newEngine(t, withAgents(newRecordingModel(), newRecordingModel())), Options{})
	sendMessage(t, handler, "s", "hello")
	for target, want := range map[string]bool{"?system=true": false, "?system=true&agent_id=ada": true} {
		answer := ask(t, handler, "GET", "/api/conversations/s/context"+target, "")
		if answer.status != 200 || strings.Contains(string(answer.body), adasPersona) != want {
			t.Errorf("%s: %s", target, answer.body)
		}
	}
	var shown struct{ View string }
	ask(t, handler, "GET", "/api/conversations/s/context?agent_id=lender", "").into(200, &shown)
	if shown.View != "codex" {
		t.Errorf("the agent's view is %s", shown.View)
	}
}

func TestUnknownAgentsAreRefused(t *testing.T) {
	handler := New(newEngine(t, withAgents(newRecordingModel(), newRecordingModel())), Options{})
	sendMessage(t, handler, "s", "hello")
	for _, test := range []struct{ method, target, body, param, message string }{
		{"POST", "/chat", `{"session_id": "s", "message": "a", "agent_id": "adda"}`, "agent_id", "did you mean ada?"},
		{"POST", "/chat", `{"session_id": "s", "message": "a", "agent_id": "somebody"}`, "agent_id", "allowed: ada, lender"},
		{"POST", "/chat", `{"session_id": "s", "message": "a", "agent_id": 5}`, "agent_id", "string"},
		{"PATCH", "/api/conversations/s", `{"active_agent": "lendr"}`, "active_agent", "did you mean lender?"},
		{"PATCH", "/api/conversations/s", `{"active_mode": "plan"}`, "active_mode", "chat, agent, run"},
		{"PATCH", "/api/conversations/s", `{"active_mode": ""}`, "active_mode", "chat, agent, run"},
		{"PATCH", "/api/conversations/s", `{"active_mode": "chat", "mode": "run"}`, "mode", "active_mode"},
		{"PATCH", "/api/conversations/s", `{}`, "", "active_agent"},
		{"POST", "/api/conversations", `{"active_agent": "adda"}`, "active_agent", "did you mean ada?"},
		{"GET", "/api/conversations/s/context?agent_id=adda", ``, "agent_id", "did you mean ada?"},
		{"GET", "/api/agents?x=1", ``, "x", "unknown query parameter"},
	} {
		if failure := ask(t, handler, test.method, test.target, test.body).failed(400, "invalid_request", test.param); !strings.Contains(failure.Error.Message, test.message) {
			t.Errorf("%s: the message %q does not say %q", test.body, failure.Error.Message, test.message)
		}
	}
	if last := len(entriesOf(t, handler, "s")); last != 2 {
		t.Errorf("a refused request left something: %d entries", last)
	}
}

// An agent that was removed from the settings is an error that names it, and another agent can be chosen.
func TestAnAgentThatIsGone(t *testing.T) {
	e := newEngine(t, withAgents(newRecordingModel(), newRecordingModel()))
	handler := New(e, Options{})
	if _, err := e.Conversations.Create(t.Context(), continuo.Scope{ProjectID: "default"}, continuo.Conversation{ProjectID: "default", Key: "s", ActiveMode: continuo.ModeAgent, ActiveAgent: "gone"}); err != nil {
		t.Fatal(err)
	}
	answer := ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "a"}`)
	if answer.status != 400 || !strings.Contains(string(answer.body), `unknown agent \"gone\"`) {
		t.Errorf("the answer is %d %s", answer.status, answer.body)
	}
	for _, way := range []string{`, "mode": "chat"`, `, "agent_id": "ada"`} {
		if answer := ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "a"`+way+`}`); answer.status != 200 {
			t.Errorf("%s: %s", way, answer.body)
		}
	}
}

// A running server sees a prompt that has changed, or come or gone, with the next request.
func TestPromptsAreReadAgain(t *testing.T) {
	dir, upstream := t.TempDir(), newRecordingModel()
	options := withAgents(upstream, newRecordingModel())
	options.Prompts = prompt.Prompts{Dir: dir}
	handler := New(newEngine(t, options), Options{})
	builtIn, err := prompt.Prompts{}.System(continuo.ModeChat, "")
	if err != nil {
		t.Fatal(err)
	}
	check := func(want ...string) {
		t.Helper()
		sendMessage(t, handler, "s", "hello")
		if got := upstream.newest(t).System; !slices.Equal(got, want) {
			t.Errorf("the system messages are %q, want %q", got, want)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check(builtIn...)
	write("system-base-rules-chat.md", "Our rules.\n")
	check("Our rules.", builtIn[1], builtIn[2])
	write("system-tool-policy.md", "Our tools.\n")
	check("Our rules.", "Our tools.", builtIn[2])
	write("system-base-rules-chat.md", "Other rules.\n")
	check("Other rules.", "Our tools.", builtIn[2])
	if err := os.Remove(file("system-base-rules-chat.md")); err != nil {
		t.Fatal(err)
	}
	check(builtIn[0], "Our tools.", builtIn[2])
	write("system-tool-policy.md", "\n") // an empty file is no message
	check(builtIn[0], builtIn[2])
}

// namedTool is a tool that says its name.
type namedTool string

func (n namedTool) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: string(n), Description: "Says its name.", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (n namedTool) Run(context.Context, tool.Call) tool.Result {
	return tool.Result{Content: string(n)}
}

// What an agent may use is what the project and the agent both allow: what either denies is not offered,
// what either asks about is asked about.
func TestAnAgentsToolsAreThoseThatBothAllow(t *testing.T) {
	upstream := &recordingModel{fakeModel: &fakeModel{"gpt-4o", follower}}
	options := withAgents(upstream, newRecordingModel())
	options.Tools = tool.Set{namedTool("a.free"), namedTool("a.projectasks"), namedTool("a.agentasks"), namedTool("a.projectdenies"), namedTool("a.agentdenies")}
	options.Policy = tool.Policy{Ask: []string{"a.projectasks"}, Deny: []string{"a.projectdenies"}, Otherwise: tool.Allow}
	options.Agents["ada"] = engine.Agent{ID: "ada", Tools: &tool.Policy{
		Allow: []string{"*"}, Ask: []string{"a.agentasks"}, Deny: []string{"a.agentdenies"}, Otherwise: tool.Allow,
	}}
	e := newEngine(t, options)
	for _, c := range []struct {
		agent   string
		offered []string
		asked   map[string]bool // of those that are called
	}{
		{"", []string{"a_free", "a_projectasks", "a_agentasks", "a_agentdenies"}, map[string]bool{"a_free": false, "a_projectasks": true, "a_agentasks": false, "a_agentdenies": false}},
		{"ada", []string{"a_free", "a_projectasks", "a_agentasks"}, map[string]bool{"a_free": false, "a_projectasks": true, "a_agentasks": true}},
	} {
		for name, asked := range c.asked {
			if got := asksForApproval(t, e, c.agent, name); got != asked {
				t.Errorf("agent %q: a call of %s is asked about: %v, want %v", c.agent, name, got, asked)
			}
			if got := upstream.newest(t).Tools; !slices.Equal(got, c.offered) {
				t.Errorf("agent %q is offered %v, want %v", c.agent, got, c.offered)
			}
		}
	}
}

// asksForApproval has a tool called and reports whether a person was asked.
func asksForApproval(t *testing.T, e *engine.Engine, agent, name string) (asked bool) {
	t.Helper()
	chat, err := e.Turns.Chat(t.Context(), engine.ChatRequest{Scope: continuo.Scope{ProjectID: "default"}, AgentID: agent, Message: continuo.Text("call c1 " + name + " {}")})
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	for event, err := range chat.Events {
		if err != nil {
			t.Fatal(err)
		}
		switch event.Kind {
		case turn.Asked:
			asked = true
			of, err := e.Turns.Get(t.Context(), chat.Conversation, chat.TurnID)
			if err == nil {
				err = e.Turns.Decide(t.Context(), of, event.Call.ID, turn.Decision{Allowed: true})
			}
			if err != nil {
				t.Fatal(err)
			}
		case turn.ToolDone:
			ran = strings.HasSuffix(event.Entry.Content.String(), strings.Replace(name, "_", ".", 1))
		}
	}
	if !ran {
		t.Errorf("%s did not run", name)
	}
	return asked
}
