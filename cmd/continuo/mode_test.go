package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/prompt"
)

// recorder is an upstream that keeps the bytes of its requests, and says yes.
type recorder struct{ bodies []string }

func (u *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.bodies = append(u.bodies, string(body))
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// cutRequest cuts a request into its system messages, its other messages in their order, and the rest.
func cutRequest(t *testing.T, body string) (system, messages []string, rest string) {
	t.Helper()
	var fields struct{ Messages json.RawMessage }
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(fields.Messages, &all); err != nil {
		t.Fatal(err)
	}
	for _, raw := range all {
		var message struct{ Role, Content string }
		if err := json.Unmarshal(raw, &message); err != nil {
			t.Fatal(err)
		}
		if message.Role == "system" && len(messages) == 0 {
			system = append(system, message.Content)
		} else {
			messages = append(messages, string(raw))
		}
	}
	return system, messages, strings.Replace(body, string(fields.Messages), "", 1)
}

// homeOf is a folder with settings for an upstream and agents, and how the program is run in it.
func homeOf(t *testing.T, upstream http.Handler) func(stdin string, args ...string) (out, notes string) {
	t.Helper()
	server, dir := httptest.NewServer(upstream), t.TempDir()
	t.Cleanup(server.Close)
	file := filepath.Join(dir, "continuo.yaml")
	text := fmt.Sprintf("model: main\nmodels:\n  main: {base_url: %q}\nagents:\n  ada: {name: Ada Lovelace, persona: You are Ada.}\n  bob: {persona: You are Bob.}\n", server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(stdin string, args ...string) (string, string) {
		t.Helper()
		var out, notes bytes.Buffer
		c := &console{in: strings.NewReader(stdin), out: &out, err: &notes}
		if err := run(t.Context(), c, append([]string{"--config", file}, args...), []string{"HOME=" + dir, "CONTINUO_STORE_PATH=" + filepath.Join(dir, "continuo.db")}); err != nil {
			t.Fatalf("continuo %s: %v\n%s", strings.Join(args, " "), err, notes.String())
		}
		return out.String(), notes.String()
	}
}

// Whether a command or a chat switches the mode: the next request has other system messages, and everything
// else of it is byte for byte what the request before had, with what was said since at the end.
func TestSwitchingTheModeOnTheCommandLine(t *testing.T) {
	upstream := &recorder{}
	command := homeOf(t, upstream)
	type seen struct {
		mode    continuo.Mode
		persona string
	}
	for _, step := range []struct {
		stdin string
		args  string
		want  []seen // of the requests that it makes
	}{
		{"", "chat s1 -m hello", []seen{{continuo.ModeChat, ""}}},
		{"", "conversations mode s1 agent", nil},
		{"", "chat s1 -m next", []seen{{continuo.ModeAgent, ""}}},
		{"in it\n/mode run\nin a run\n/agent ada\nas Ada\n/mode run\nas Ada in a run\n/mode chat\n/plan\nback\n/mode agent\nAda again\n/agent none\nnobody\n", "chat s1", []seen{
			{continuo.ModeAgent, ""},
			{continuo.ModeRun, ""},
			{continuo.ModeAgent, "You are Ada."},
			{continuo.ModeRun, "You are Ada."},
			{continuo.ModeChat, ""},
			{continuo.ModeAgent, "You are Ada."},
			{continuo.ModeAgent, ""},
		}},
		{"", "chat s1 --agent bob -m next", []seen{{continuo.ModeAgent, "You are Bob."}}},
		{"", "chat s1 -m next", []seen{{continuo.ModeAgent, "You are Bob."}}},
		{"", "conversations mode s1 run", nil},
		{"", "chat s1 -m next", []seen{{continuo.ModeRun, "You are Bob."}}},
		{"", "conversations mode s1 --agent ada", nil},
		{"", "chat s1 -m next", []seen{{continuo.ModeAgent, "You are Ada."}}},
		{"", "conversations mode s1 run --agent none", nil},
		{"", "chat s1 -m next", []seen{{continuo.ModeRun, ""}}},
		{"", "chat s1 --mode chat --agent ada -m next", []seen{{continuo.ModeChat, ""}}},
		{"", "chat s1 --agent none --mode agent -m next", []seen{{continuo.ModeAgent, ""}}},
	} {
		made := len(upstream.bodies)
		command(step.stdin, strings.Fields(step.args)...)
		if got := len(upstream.bodies) - made; got != len(step.want) {
			t.Fatalf("%s made %d requests, want %d", step.args, got, len(step.want))
		}
		for i, want := range step.want {
			system, messages, rest := cutRequest(t, upstream.bodies[made+i])
			expected, err := prompt.Prompts{}.System(want.mode, want.persona)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(system, expected) {
				t.Errorf("%s, request %d: the system messages are %q, want %q", step.args, i+1, system, expected)
			}
			if made+i == 0 {
				continue
			}
			_, before, restBefore := cutRequest(t, upstream.bodies[made+i-1])
			if rest != restBefore || len(messages) != len(before)+2 || !slices.Equal(messages[:len(before)], before) {
				t.Errorf("%s, request %d: %q, %q\nafter %q, %q", step.args, i+1, messages, rest, before, restBefore)
			}
		}
	}
	exported, _ := command("", "export", "s1")
	out := ""
	for line := range strings.Lines(exported) { // envelopes of requests have the system messages, entries have none
		if !strings.HasPrefix(line, `{"continuo":"envelope"`) {
			out += line
		}
	}
	for _, text := range []string{"You are Ada.", "You are Bob.", "- active:", `"role":"system"`} {
		if strings.Contains(strings.ReplaceAll(out, " ", ""), strings.ReplaceAll(text, " ", "")) || !strings.Contains(out, "as Ada in a run") {
			t.Errorf("the log has %q: %s", text, out)
		}
	}
}

// A chat says which mode and agent there are, and from when on others count.
func TestChatShowsItsModeAndAgent(t *testing.T) {
	command := homeOf(t, &recorder{})
	out, notes := command("/mode\n/agent bob\n/mode\nhello\n/mode\n/mode run\n/agent\n/agent none\n/mode\n/new\n/mode\n", "chat", "s1", "--agent", "ada")
	want := []string{
		"Mode agent, agent ada (Ada Lovelace) from the next message on.", // of --agent
		"Mode agent, agent bob from the next message on.",
		"Mode agent, agent bob from the next message on.",
		"Mode agent, agent bob.",
		"Mode run, agent bob from the next message on.",
		"Mode run, agent bob from the next message on.", // of /agent
		"Mode run from the next message on.",
		"Mode run from the next message on.",
	}
	var got []string
	for line := range strings.Lines(notes) {
		if strings.HasPrefix(line, "Mode ") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("it said %q, want %q", got, want)
	}
	if !strings.Contains(out, "›  bob") || !strings.Contains(out, "ada  Ada Lovelace") {
		t.Errorf("the agents are shown as\n%s", out)
	}
	for _, prompt := range []struct {
		chatSession chatSession
		want        string
	}{
		{chatSession{}, "› "},
		{chatSession{mode: continuo.ModeRun}, "run › "},
		{chatSession{agent: "ada"}, "agent ada › "},
		{chatSession{agent: "ada", mode: continuo.ModeChat}, "chat ada › "},
		{chatSession{conversation: continuo.Conversation{ActiveMode: continuo.ModeAgent, ActiveAgent: "ada"}}, "agent ada › "},
		{chatSession{conversation: continuo.Conversation{ActiveMode: continuo.ModeChat, ActiveAgent: "ada"}}, "› "},
		{chatSession{conversation: continuo.Conversation{ActiveMode: continuo.ModeAgent, ActiveAgent: "ada"}, agent: "none"}, "agent › "},
	} {
		prompt.chatSession.app = &app{console: &console{}}
		if got := prompt.chatSession.prompt(); got != prompt.want {
			t.Errorf("the prompt is %q, want %q", got, prompt.want)
		}
	}
}

func TestTabCompletesModesAndAgents(t *testing.T) {
	of := &chatSession{services: &services{settings: &config.Config{Agents: map[string]config.AgentConfig{"ada": {}, "adam": {}, "bob": {}}}}}
	for line, want := range map[string]string{
		"/ag": "/agent ", "/agent b": "/agent bob", "/agent ad": "/agent ada", "/agent n": "/agent none", "/mode r": "/mode run", "/mode x": "/mode x", "/m": "/mode", "/und": "/undo", "/retr": "/retry ",
	} {
		if got, at, ok := completeLine(t.Context(), of.completions)(line, len(line), '\t'); got != want || at != len(want) || !ok {
			t.Errorf("%q became %q at %d (%v), want %q", line, got, at, ok, want)
		}
	}
	if _, _, ok := completeLine(t.Context(), of.completions)("hello", 5, '\t'); ok {
		t.Error("a message was completed")
	}
}

// A server has the agents and workflows of its settings, and says how many.
func TestServeReportsAgentsAndWorkflows(t *testing.T) {
	dir := t.TempDir()
	text := "agents: {ada: {persona: You are Ada.}, bob: {persona: You are Bob.}}\n"
	if err := os.WriteFile(filepath.Join(dir, "continuo.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "workflows"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "workflows", "a.yaml"), []byte("nodes: {a: {brief: x, agent: eve}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, address := startServer(t, dir)
	p.stderr.wait(t, `workflows are refused until their files are fixed:\n +workflows/a.yaml:1:[0-9]+: unknown agent eve`)
	p.stderr.wait(t, `agents +2 \(ada, bob\)\n`)
	p.stderr.wait(t, `workflows +1 \(example\)\n`)
	if status, answer := post(t, address+"/chat", `{"session_id": "s1", "message": "Hello", "agent_id": "ada"}`); status != http.StatusOK {
		t.Errorf("status %d: %v", status, answer)
	}
	if status, answer := post(t, address+"/chat", `{"session_id": "s1", "message": "Hello", "agent_id": "adda"}`); status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(answer), "did you mean ada?") {
		t.Errorf("an unknown agent: status %d: %v", status, answer)
	}
}
