package eino

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/killtest"
	"github.com/continuo-log/continuo/store/sqlite"
)

var (
	_ compose.CheckPointStore = (*CheckPoints)(nil)
	_ adk.CheckPointStore     = (*CheckPoints)(nil)
	_ adk.CheckPointDeleter   = (*CheckPoints)(nil)
)

func openLog(t testing.TB) *continuo.Log {
	t.Helper()
	return openLogAt(t, filepath.Join(t.TempDir(), "eino.db"))
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

func call(id, name, arguments string) schema.ToolCall {
	return schema.ToolCall{ID: id, Type: "function", Function: schema.FunctionCall{Name: name, Arguments: arguments}}
}

func messages() []*schema.Message {
	url := "https://example.org/lamp.png"
	answer := schema.AssistantMessage("In March.", nil)
	answer.ResponseMeta = &schema.ResponseMeta{FinishReason: "stop", Usage: &schema.TokenUsage{PromptTokens: 12, CompletionTokens: 3, TotalTokens: 15}}
	answer.Extra = map[string]any{"request": "r-1"}
	asking := schema.AssistantMessage("", []schema.ToolCall{call("c1", "calendar", "{}")})
	asking.ReasoningContent = "Hm."
	return []*schema.Message{
		schema.SystemMessage("You are a gardener."),
		schema.UserMessage("When do I sow?"),
		asking,
		schema.UserMessage("Well?"), // between a call and its result
		schema.ToolMessage("March", "c1", schema.WithToolName("calendar")),
		schema.ToolMessage("the result of no call", "c9"),
		answer,
		schema.AssistantMessage("", nil),
		schema.UserMessage(""),
		{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{
			{Type: schema.ChatMessagePartTypeText, Text: "This one?"},
			{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: schema.MessagePartCommon{URL: &url}}},
		}},
	}
}

func agenticMessages() []*schema.AgenticMessage {
	block := func(b *schema.ContentBlock) *schema.ContentBlock { return b }
	text := []*schema.FunctionToolResultContentBlock{{Type: schema.FunctionToolResultContentBlockTypeText, Text: &schema.UserInputText{Text: "March"}}}
	return []*schema.AgenticMessage{
		schema.SystemAgenticMessage("You are a gardener."),
		schema.UserAgenticMessage("When do I sow?"),
		{Role: schema.AgenticRoleTypeAssistant, ContentBlocks: []*schema.ContentBlock{
			block(schema.NewContentBlock(&schema.Reasoning{Text: "Hm.", Signature: "signed"})),
			block(schema.NewContentBlock(&schema.FunctionToolCall{CallID: "c1", Name: "calendar", Arguments: "{}"})),
			block(schema.NewContentBlock(&schema.FunctionToolCall{CallID: "c2", Name: "calendar", Arguments: "{}"})),
		}},
		{Role: schema.AgenticRoleTypeUser, ContentBlocks: []*schema.ContentBlock{
			block(schema.NewContentBlock(&schema.FunctionToolResult{CallID: "c1", Name: "calendar", Content: text})),
			block(schema.NewContentBlock(&schema.FunctionToolResult{CallID: "c2", Name: "calendar", Content: text})),
		}},
		{Role: schema.AgenticRoleTypeAssistant, ContentBlocks: []*schema.ContentBlock{block(schema.NewContentBlock(&schema.AssistantGenText{Text: "In March."}))}},
		schema.UserAgenticMessage(""),
	}
}

// Every message comes back as it was given, wherever it stands, in another process too, and of its own session only.
func TestMessagesComeBack(t *testing.T) {
	t.Run("Message", func(t *testing.T) { comeBack(t, messages()) })
	t.Run("AgenticMessage", func(t *testing.T) { comeBack(t, agenticMessages()) })
}

func comeBack[M Message](t *testing.T, given []M) {
	path := filepath.Join(t.TempDir(), "eino.db")
	sessions := NewSessions[M](openLogAt(t, path), Options{UserID: "ada"})
	if err := sessions.Append(t.Context(), "s/1 ü", given...); err != nil {
		t.Fatal(err)
	}
	for name, reader := range map[string]*Sessions[M]{"the same process": sessions, "another one": NewSessions[M](openLogAt(t, path), Options{UserID: "ada"})} {
		got, err := reader.Read(t.Context(), "s/1 ü")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, given) {
			t.Errorf("%s:\n%v\nwant\n%v", name, got, given)
		}
	}
	for _, other := range []*Sessions[M]{NewSessions[M](openLogAt(t, path), Options{UserID: "bob"}), NewSessions[M](openLogAt(t, path), Options{})} {
		if got, err := other.Read(t.Context(), "s/1 ü"); err != nil || got != nil {
			t.Errorf("another user's session has %v, %v", got, err)
		}
	}
}

// A session is an ordinary conversation, with a hidden record for what a model could not be shown at its place.
func TestMessagesAreEntries(t *testing.T) {
	log := openLog(t)
	sessions := NewSessions[*schema.AgenticMessage](log, Options{})
	if err := sessions.Append(t.Context(), "s", agenticMessages()...); err != nil {
		t.Fatal(err)
	}
	conversation, err := log.Find(t.Context(), continuo.Scope{ProjectID: continuo.DefaultProject}, sessions.conversation("s").Key)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for entry, err := range log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %t %q %d", entry.Role, entry.Hidden, entry.Content, len(entry.ToolCalls)))
	}
	want := `system false "You are a gardener." 0
user false "When do I sow?" 0
assistant false "" 2
tool false "March" 0
tool false "March" 0
assistant false "In March." 0
user false "[user_input_text]" 0`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("entries:\n%s\nwant:\n%s", got, want)
	}
}

// The steps of Eino's example of a memory: read, add, write all, and query.
func TestAsTheirMemoryExample(t *testing.T) {
	ctx, log := t.Context(), openLog(t)
	sessions := NewSessions[*schema.Message](log, Options{})
	for turn := range 3 {
		before, err := sessions.Read(ctx, "demo")
		if err != nil || len(before) != 2*turn {
			t.Fatalf("turn %d begins with %d messages, %v", turn, len(before), err)
		}
		answer := schema.AssistantMessage(fmt.Sprint("Restaurant ", turn), nil)
		if err := sessions.Write(ctx, "demo", append(before, schema.UserMessage("Where do I eat?"), answer)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := sessions.Query(ctx, "demo", "restaurant", 2)
	if err != nil || len(found) != 2 || found[0].Content != "Restaurant 0" {
		t.Errorf("found %v, %v", found, err)
	}
	conversation, err := log.Find(ctx, continuo.Scope{ProjectID: continuo.DefaultProject}, sessions.conversation("demo").Key)
	if err != nil || conversation.LastSeq != 6 {
		t.Errorf("writing all each time made %d entries of 6 messages, %v", conversation.LastSeq, err)
	}
	shorter := []*schema.Message{schema.UserMessage("Start again.")}
	if err := sessions.Write(ctx, "demo", shorter); err != nil {
		t.Fatal(err)
	}
	if got, err := sessions.Read(ctx, "demo"); err != nil || !reflect.DeepEqual(got, shorter) {
		t.Errorf("%v, %v", got, err)
	}
	for range 2 {
		if err := sessions.Delete(ctx, "demo"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := sessions.Read(ctx, "demo"); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// A redaction removes a message with its own form.
func TestRedactedMessagesAreGone(t *testing.T) {
	log := openLog(t)
	sessions := NewSessions[*schema.Message](log, Options{})
	secret := schema.UserMessage("my PIN is 0000")
	secret.Extra = map[string]any{"typed": "0000"}
	if err := sessions.Append(t.Context(), "s", secret, schema.UserMessage("thanks")); err != nil {
		t.Fatal(err)
	}
	conversation, err := log.Find(t.Context(), continuo.Scope{ProjectID: continuo.DefaultProject}, sessions.conversation("s").Key)
	if err == nil {
		_, err = log.Redact(t.Context(), conversation, 1, 1, "a PIN")
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := sessions.Read(t.Context(), "s")
	if err != nil || len(got) != 2 || strings.Contains(fmt.Sprint(got[0], got[0].Extra), "0000") || got[1].Content != "thanks" {
		t.Errorf("%v, %v", got, err)
	}
}

// Every message and checkpoint that was acknowledged is there after the process was killed.
func TestKill(t *testing.T) {
	at := func(i int) string { return fmt.Sprint("message ", i) }
	path, acknowledged := killtest.Run(t, 25, func(path string) func(int) error {
		log := openLogAt(t, path)
		sessions, checkPoints := NewSessions[*schema.Message](log, Options{}), NewCheckPoints(log, Options{})
		return func(i int) error {
			if err := sessions.Append(t.Context(), "s", schema.UserMessage(at(i))); err != nil {
				return err
			}
			return checkPoints.Set(t.Context(), "c", []byte(at(i)))
		}
	})
	log := openLogAt(t, path)
	got, err := NewSessions[*schema.Message](log, Options{}).Read(t.Context(), "s")
	if err != nil || len(got) < acknowledged || len(got) > acknowledged+1 {
		t.Fatalf("%d messages of %d, %v", len(got), acknowledged, err)
	}
	for i, message := range got {
		if message.Content != at(i) {
			t.Errorf("message %d is %q", i, message.Content)
		}
	}
	data, found, err := NewCheckPoints(log, Options{}).Get(t.Context(), "c")
	if err != nil || !found || string(data) != at(acknowledged-1) && string(data) != at(acknowledged) {
		t.Errorf("the checkpoint is %q, %t, %v; want that of write %d or the next", data, found, err, acknowledged-1)
	}
}
