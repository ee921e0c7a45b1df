package langchaingo

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/killtest"
	"github.com/continuo-log/continuo/store/sqlite"
)

func openLog(t testing.TB) *continuo.Log {
	t.Helper()
	return openLogAt(t, filepath.Join(t.TempDir(), "chain.db"))
}

func openLogAt(t testing.TB, path string) *continuo.Log {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return continuo.NewLog(store, continuo.LogOptions{})
}

func wantMessages(t *testing.T, h schema.ChatMessageHistory, want ...llms.ChatMessage) {
	t.Helper()
	got, err := h.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("messages\n%#v\nwant\n%#v", got, want)
	}
}

// The steps of langchaingo's tests of its histories: TestChatMessageHistory and TestSqliteChatMessageHistory.
func TestAsTheirOwnHistories(t *testing.T) {
	ctx, h := t.Context(), New(openLog(t), "default", Options{})
	for _, err := range []error{h.AddAIMessage(ctx, "foo"), h.AddUserMessage(ctx, "bar")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantMessages(t, h, llms.AIChatMessage{Content: "foo"}, llms.HumanChatMessage{Content: "bar"})
	if err := h.SetMessages(ctx, []llms.ChatMessage{llms.AIChatMessage{Content: "foo"}, llms.SystemChatMessage{Content: "bar"}}); err != nil {
		t.Fatal(err)
	}
	if err := h.AddUserMessage(ctx, "zoo"); err != nil {
		t.Fatal(err)
	}
	wantMessages(t, h, llms.AIChatMessage{Content: "foo"}, llms.SystemChatMessage{Content: "bar"}, llms.HumanChatMessage{Content: "zoo"})
	if err := h.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	wantMessages(t, h)
	if err := h.Clear(ctx); err != nil { // again
		t.Fatal(err)
	}
}

// Every kind of message comes back as it was given, wherever it stands.
func TestAllMessages(t *testing.T) {
	log := openLog(t)
	h := New(log, "all", Options{UserID: "ada"})
	given := []llms.ChatMessage{
		llms.SystemChatMessage{Content: "You are a gardener."},
		llms.HumanChatMessage{Content: "When do I sow?"},
		llms.AIChatMessage{ReasoningContent: "Hm.", ToolCalls: []llms.ToolCall{{ID: "c1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "calendar", Arguments: "{}"}}}},
		llms.HumanChatMessage{Content: "Well?"}, // between a call and its result
		llms.ToolChatMessage{ID: "c1", Content: "March"},
		llms.ToolChatMessage{ID: "c9", Content: "the result of no call"},
		llms.AIChatMessage{Content: "In March."},
		llms.AIChatMessage{},
		llms.HumanChatMessage{},
		llms.AIChatMessage{Content: "old", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}},
		llms.FunctionChatMessage{Name: "f", Content: "1"},
		llms.GenericChatMessage{Role: "critic", Name: "Bob", Content: "Hm."},
		llms.GenericChatMessage{Role: "assistant", Content: "So."},
	}
	for _, message := range given {
		if err := h.AddMessage(t.Context(), message); err != nil {
			t.Fatalf("%#v: %v", message, err)
		}
	}
	wantMessages(t, h, given...)
	wantMessages(t, New(log, "all", Options{UserID: "bob"}))
	wantMessages(t, New(log, "other", Options{UserID: "ada"}))
}

// langchaingo's memory with this history.
func TestConversationBuffer(t *testing.T) {
	log := openLog(t)
	for range 2 { // the second time as a new process would
		buffer := memory.NewConversationBuffer(memory.WithChatHistory(New(log, "buffer", Options{})))
		if err := buffer.SaveContext(t.Context(), map[string]any{"input": "My dog is Rex."}, map[string]any{"output": "A good name."}); err != nil {
			t.Fatal(err)
		}
	}
	buffer := memory.NewConversationBuffer(memory.WithChatHistory(New(log, "buffer", Options{})))
	got, err := buffer.LoadMemoryVariables(t.Context(), nil)
	if want := "Human: My dog is Rex.\nAI: A good name.\nHuman: My dog is Rex.\nAI: A good name."; err != nil || got["history"] != want {
		t.Errorf("%v, %v", got, err)
	}
}

// Every message that was acknowledged is there after the process was killed, and of messages that were replaced there are all
// old ones or all new ones.
func TestKill(t *testing.T) {
	at := func(i int) string { return fmt.Sprint("message ", i) }
	path, acknowledged := killtest.Run(t, 25, func(path string) func(int) error {
		log := openLogAt(t, path)
		added, replaced := New(log, "added", Options{}), New(log, "replaced", Options{})
		return func(i int) error {
			if err := added.AddUserMessage(t.Context(), at(i)); err != nil {
				return err
			}
			return replaced.SetMessages(t.Context(), []llms.ChatMessage{llms.HumanChatMessage{Content: at(i)}, llms.AIChatMessage{Content: at(i)}})
		}
	})
	log := openLogAt(t, path)
	got, err := New(log, "added", Options{}).Messages(t.Context())
	if err != nil || len(got) < acknowledged || len(got) > acknowledged+1 {
		t.Fatalf("%d messages of %d, %v", len(got), acknowledged, err)
	}
	for i, message := range got {
		if message.GetContent() != at(i) {
			t.Errorf("message %d is %q", i, message.GetContent())
		}
	}
	replaced, err := New(log, "replaced", Options{}).Messages(t.Context())
	if err != nil || len(replaced) != 2 || replaced[0].GetContent() != replaced[1].GetContent() ||
		replaced[0].GetContent() != at(acknowledged-1) && replaced[0].GetContent() != at(acknowledged) {
		t.Errorf("the replaced messages are %q, %v; want those of write %d or the next", replaced, err, acknowledged-1)
	}
}
