package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/window"
)

// handedOff is a conversation with a long answer, calls and images, whose newest user message is older than everything
// else that a hand-off shows.
func handedOff(t *testing.T, h *turnHarness) continuo.Conversation {
	t.Helper()
	image := `{"type":"image_url","image_url":{"url":"https://example.org/%s.png"}}`
	parts := func(name string) (content continuo.Content) {
		if err := json.Unmarshal(fmt.Appendf(nil, `[{"type":"text","text":"Look."},`+image+`]`, name), &content); err != nil {
			t.Fatal(err)
		}
		return content
	}
	entries := []continuo.Entry{
		{Role: continuo.System, Content: continuo.Text("You are kind.")},
		{Role: continuo.User, Content: continuo.Text("hello")},
		{Role: continuo.Assistant, Content: continuo.Text(strings.Repeat("long ", 100))},
		{Role: continuo.User, Content: parts("asked")},
	}
	for i := range 60 {
		id := fmt.Sprintf("c%d", i)
		entries = append(entries,
			continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall(id, "look", "{}")}},
			continuo.Entry{Role: continuo.Tool, ToolCallID: id, Content: parts("found")},
		)
	}
	entries = append(entries, continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(strings.Repeat("long ", 100))})
	conversation, err := h.Log.Create(t.Context(), continuo.Conversation{ProjectID: "default"})
	if err == nil {
		_, err = h.Log.Append(t.Context(), conversation.ID, entries, continuo.AppendOptions{})
	}
	if err == nil {
		conversation, err = h.Log.Conversation(t.Context(), conversation.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conversation
}

func isBroken(v render.Violation) bool { return !v.Lint }

func TestAHandoffIsShownInEveryFormat(t *testing.T) {
	h := newTurnHarness(t)
	conversation := handedOff(t, h)
	show := func(format engine.Format) *engine.Context {
		t.Helper()
		shown, err := h.Contexts.Build(t.Context(), conversation, engine.ContextRequest{View: task.HandoffView, Format: format})
		if err != nil {
			t.Fatal(err)
		}
		return shown
	}
	if shown := show(engine.FormatOpenAI); len(shown.Messages) != 50 || slices.ContainsFunc(render.CheckOpenAIChat(shown.Messages), isBroken) || strings.Contains(fmt.Sprintf("%s", shown.Messages), "tool") {
		t.Errorf("openai: %s", shown.Messages)
	}
	if shown := show(engine.FormatAnthropic); slices.ContainsFunc(render.CheckAnthropic(shown.Messages), isBroken) || shown.Text != "" {
		t.Errorf("anthropic: %s", shown.Messages)
	}
	if shown := show(engine.FormatTranscript); !strings.Contains(shown.Text, "$user: Look.\n[image]") {
		t.Errorf("transcript: %s", shown.Text)
	}
	shown := show("")
	if shown.Format != engine.FormatHandoff || strings.Count(shown.Text, "\n[") != 50 || strings.Count(shown.Text, "found.png") != 48 ||
		!strings.Contains(shown.Text, "asked.png") || !strings.HasSuffix(shown.Text, "📊 History metadata: 50 messages, 1 truncated\n\n") {
		t.Errorf("handoff: %s", shown.Text)
	}
}

// The text is the section of the task's prompt, byte for byte.
func TestAHandoffIsTheContextOfATask(t *testing.T) {
	h := newTurnHarness(t)
	conversation := handedOff(t, h)
	conversation.LastSeq = 40 // fewer messages than a history has
	shown, err := h.Contexts.Build(t.Context(), conversation, engine.ContextRequest{View: task.HandoffView})
	if err != nil {
		t.Fatal(err)
	}
	request, err := task.Parse(fmt.Appendf(nil, `{"description": "Go on.", "conversation_history": {"conversation_id": %q, "to": 40}}`, conversation.ID), task.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	status, _, err := h.Tasks.Create(t.Context(), engine.TaskRequest{Scope: continuo.Scope{ProjectID: "default"}, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	prompt, err := status.Prompt()
	if err != nil || shown.Text == "" || !strings.Contains(prompt, shown.Text) {
		t.Errorf("%v: the task tells\n%s\nthe view\n%s", err, prompt, shown.Text)
	}
}

func TestOnlyTheHandoffHasItsFormat(t *testing.T) {
	h := newTurnHarness(t)
	_, err := h.Contexts.Build(t.Context(), handedOff(t, h), engine.ContextRequest{View: window.Codex, Format: engine.FormatHandoff})
	if !errors.Is(err, continuo.ErrInvalid) {
		t.Error(err)
	}
}
