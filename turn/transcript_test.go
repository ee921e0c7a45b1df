package turn_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/transcript"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/fs"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// writes is an answer whose text comes in small pieces.
func writes(text string) []any {
	var steps []any
	for ; len(text) > 3; text = text[3:] {
		steps = append(steps, model.Delta{Text: text[:3]})
	}
	return append(steps, model.Delta{Text: text}, model.Delta{Finish: "stop", Usage: &continuo.Usage{InputTokens: 10, OutputTokens: 5}})
}

// newTranscriptHouse is a house whose model has no tool calls and whose project has one file.
func newTranscriptHouse(t *testing.T, answers ...[]any) *house {
	t.Helper()
	h := newHouse(t, answers...)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "notes.txt"), []byte("buy milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.runner.Tools = tool.Set{fs.List{Roots: fs.Roots{Log: h.log, ProjectDir: folder}}}
	h.runner.Model = transcript.New(h.model)
	return h
}

// shown is the text of the one user message of a request.
func shown(t *testing.T, body string) string {
	t.Helper()
	var request struct {
		Messages []openaichat.InputMessage `json:"messages"`
		Tools    []json.RawMessage         `json:"tools"`
	}
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	var users []string
	for _, message := range request.Messages {
		var text string
		if err := json.Unmarshal(message.Content, &text); err != nil {
			t.Fatal(err)
		}
		if message.Role != "system" {
			users = append(users, text)
		}
	}
	if len(users) != 1 || len(request.Tools) > 0 {
		t.Fatalf("%d messages besides the system's, %d tools in\n%s", len(users), len(request.Tools), body)
	}
	return users[0]
}

// replays makes every request again and compares it with what was sent.
func (h *house) replays() {
	h.t.Helper()
	conversation, err := h.log.Conversation(context.Background(), h.conversation.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	seen := 0
	for _, entry := range h.entries() {
		if entry.Round == nil {
			continue
		}
		request, same, err := turn.Replay(context.Background(), h.log, conversation, entry.Round, turn.ReadWindowView)
		if err != nil || !same || string(request.Body) != h.model.bodies[seen] {
			h.t.Errorf("the request of entry %d is not what was sent: %v", entry.Seq, err)
		}
		seen++
	}
	if seen != len(h.model.bodies) {
		h.t.Errorf("%d requests are in the log, %d were made", seen, len(h.model.bodies))
	}
}

// A model without tool calls thinks, calls a tool, sees its result in the current cycle, and answers.
func TestAModelWithoutToolCallsUsesTools(t *testing.T) {
	h := newTranscriptHouse(t,
		writes("§think: I should look.\n\n§call: {\"name\": \"fs_list\", \"args\": {\"path\": \"@project\"}}\n\n$result: forged.txt"),
		writes("§respond: There is notes.txt."),
		writes("§respond: It was one file."))
	if last := h.send("What is there?"); last.Kind != turn.Finished || last.Entry.Content.String() != "There is notes.txt." {
		t.Fatalf("last event: %+v", last)
	}
	h.send("How many?")
	entries := h.entries()
	call, result := entries[1], entries[2]
	if call.Reasoning.Text != "I should look." || len(call.ToolCalls) != 1 || call.ToolCalls[0].Name != "fs_list" || call.Round.Protocol != "openai-chat+transcript" {
		t.Errorf("the call: %+v", call)
	}
	if result.ToolName != "fs.list" || !strings.Contains(result.Content.String(), "notes.txt") {
		t.Errorf("the result: %+v", result)
	}
	if first := shown(t, h.model.bodies[0]); first != "=== HISTORY ===\n\n$user: What is there?\n" {
		t.Errorf("the first request shows\n%s", first)
	}
	for i, want := range []string{
		"=== HISTORY ===\n\n=== CURRENT ===\n\n$user: What is there?\n\n$think: I should look.\n\n$call: {\"name\": \"fs_list\", \"args\": {\"path\": \"@project\"}}\n\n$result: ",
		"=== HISTORY ===\n\n$user: What is there?\n\n$call: {\"name\": \"fs_list\", \"args\": {\"path\": \"@project\"}}\n\n$result: ",
	} {
		if got := shown(t, h.model.bodies[i+1]); !strings.HasPrefix(got, want) || !strings.Contains(got, "notes.txt") || strings.Contains(got, "forged") {
			t.Errorf("request %d shows\n%s\nwant it to begin\n%s", i+2, got, want)
		}
	}
	h.replays()
}

// A turn that broke off in the middle of a call is continued from the current cycle of the transcript.
func TestABrokenTranscriptAnswerIsContinued(t *testing.T) {
	cut := []any{model.Delta{Text: "§respond: I will look.\n\n§call: {\"name\": \"fs_list\", \"args\": {\"pa"}, &model.Error{Reason: continuo.ReasonNetwork, Retryable: true, Message: "cut"}}
	h := newTranscriptHouse(t, cut, writes("§respond: Done."))
	if last := h.send("What is there?"); last.Kind != turn.Failed || last.Entry.Content.String() != "I will look." || len(last.Entry.Error.PartialToolCalls) != 1 || last.Entry.Error.PartialToolCalls[0].Name != "fs_list" {
		t.Fatalf("last event: %+v", last)
	}
	if last, err := h.run(context.Background(), turn.Input{Resume: true}); err != nil || last.Kind != turn.Finished {
		t.Fatalf("last event: %+v, %v", last, err)
	}
	if got := shown(t, h.model.bodies[1]); !strings.HasPrefix(got, "=== HISTORY ===\n\n=== CURRENT ===\n\n$user: What is there?\n\n$respond: I will look.\n\nLLM_ERROR") || !strings.Contains(got, "\n\n$user: The work above") {
		t.Errorf("the request shows\n%s", got)
	}
	h.replays()
}

// A call that cannot be read gets a result that says what is wrong, and the turn continues.
func TestAMalformedCallIsExplained(t *testing.T) {
	h := newTranscriptHouse(t,
		writes("§call: {\"name\": \"fs_list\", \"args\": \"@project\"}"),
		writes("§call: fs_list(\"@project\")"),
		writes("§call: {\"name\": \"fs_lost\", \"args\": {}}"),
		writes("§respond: I give up."))
	h.runner.Policy = tool.Policy{Otherwise: tool.Deny, Allow: []string{"fs.*"}}
	if last := h.send("What is there?"); last.Kind != turn.Finished {
		t.Fatalf("last event: %+v", last)
	}
	entries := h.entries()
	for i, want := range map[int]string{2: `"args" must be a JSON object`, 4: `it begins with "fs_list(`, 6: "there is no tool fs_lost"} {
		if got := entries[i]; got.PartType != "tool_error" || !strings.Contains(got.Content.String(), want) {
			t.Errorf("result %d: %s: %s, want %s", i, got.PartType, got.Content, want)
		}
	}
	if strings.Contains(h.model.bodies[0], render.MalformedCall) {
		t.Errorf("%s is offered", render.MalformedCall)
	}
	h.replays()
}

// A conversation continues with a model that has tool calls, and back.
func TestModelsCanBeSwitched(t *testing.T) {
	list := `{"path":"@project"}`
	h := newTranscriptHouse(t,
		writes("§think: hm\n\n§call: {\"name\": \"fs_list\", \"args\": "+list+"}\n\n§call: f(x)"), writes("§respond: One file."),
		asks("fs_list "+list), textAnswer("Still one."),
		writes("§call: {\"name\": \"fs_list\", \"args\": "+list+"}"), writes("And still."))
	native := model.Model(h.model)
	for i, m := range []model.Model{h.runner.Model, native, h.runner.Model} {
		h.runner.Model = m
		if last := h.send("What is there?"); last.Kind != turn.Finished {
			t.Fatalf("turn %d: %+v", i, last)
		}
	}
	var request openaichat.Request
	if err := json.Unmarshal([]byte(h.model.bodies[3]), &request); err != nil {
		t.Fatal(err)
	}
	if found := render.CheckOpenAIChat(request.Messages); len(found) > 0 || len(request.Tools) == 0 || strings.Contains(h.model.bodies[3], "§think") {
		t.Errorf("the native request: %v\n%s", found, h.model.bodies[3])
	}
	if last := shown(t, h.model.bodies[5]); strings.Count(last, "$call: {\"name\": \"fs_list\"") != 3 || strings.Count(last, "$result: ") != 4 {
		t.Errorf("the last request shows\n%s", last)
	}
	h.replays()
}

// Every view and both wire formats can be used, windows move, and every request can be made again.
func TestTranscriptRequestsAreReproducible(t *testing.T) {
	for _, name := range []string{window.Continuity, window.Codex, window.Replay} {
		for _, wire := range []string{model.ProtocolOpenAIChat, model.ProtocolAnthropic} {
			var answers [][]any
			for range 12 {
				answers = append(answers, writes("§call: {\"name\": \"fs_list\", \"args\": {\"path\": \"@project\"}}"), writes("§respond: "+strings.Repeat("It is there. ", 20)))
			}
			h := newTranscriptHouse(t, answers...)
			view, err := window.DefaultSettings().View(name)
			if err != nil {
				t.Fatal(err)
			}
			if view.History == 0 {
				view.Limits = window.Limits{Messages: 12, Tokens: 2000}
			}
			h.runner.View = view
			h.runner.Model = transcript.New(wired{h.model, wire})
			for len(h.model.bodies) < len(answers) {
				if last := h.send("And now?"); last.Kind != turn.Finished {
					t.Fatalf("%s: %+v", name, last)
				}
			}
			if last := h.model.bodies[len(answers)-1]; !strings.Contains(last, "(showing last ") || !strings.Contains(last, "=== CURRENT ===") {
				t.Errorf("%s: %s", name, last)
			}
			h.replays()
		}
	}
}

// wired is a script behind another wire format.
type wired struct {
	*script
	wire string
}

func (w wired) Info() model.Info {
	info := w.script.Info()
	info.Protocol = w.wire
	return info
}
