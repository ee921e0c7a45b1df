package task_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/continuo-log/continuo/task"
)

func TestShaping(t *testing.T) {
	for name, test := range map[string]struct {
		role, content string
		want          string
		truncated     bool
	}{
		"user at the limit":       {"user", strings.Repeat("x", 8000), strings.Repeat("x", 8000), false},
		"user above it":           {"user", strings.Repeat("x", 8001), strings.Repeat("x", 7900) + " ... (truncated, original: 8001 chars)", true},
		"user in wide characters": {"user", strings.Repeat("界", 8001), strings.Repeat("界", 7900) + " ... (truncated, original: 8001 chars)", true},
		"user at it in bytes":     {"user", strings.Repeat("😀", 8000), strings.Repeat("😀", 8000), false},
		"assistant at the limit":  {"assistant", strings.Repeat("y", 150), strings.Repeat("y", 150), false},
		"assistant above it":      {"assistant", strings.Repeat("y", 151), strings.Repeat("y", 150) + " ... (truncated)", true},
		"orchestrator above it":   {"orchestrator", strings.Repeat("é", 500), strings.Repeat("é", 150) + " ... (truncated)", true},
		"a cluster is several":    {"assistant", strings.Repeat("e\u0301", 76), strings.Repeat("e\u0301", 75) + " ... (truncated)", true},
		"nothing":                 {"user", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			made, _ := validated(t, []any{message(test.role, test.content)})
			history := made.Context.ConversationHistory
			got := history.Messages[0]
			if got.Content != test.want || got.Truncated != test.truncated || got.OriginalLength != utf8.RuneCountInString(test.content) {
				t.Errorf("got %d characters, truncated %v, original %d", utf8.RuneCountInString(got.Content), got.Truncated, got.OriginalLength)
			}
			if (history.TruncatedCount == 1) != test.truncated || !utf8.ValidString(got.Content) {
				t.Errorf("%d are counted as truncated", history.TruncatedCount)
			}
		})
	}
}

func TestOtherLimits(t *testing.T) {
	limits := task.Limits{MaxMessages: 1, UserMaxChars: 300, AssistantMaxChars: 10}
	messages := []any{message("assistant", "gone"), message("user", strings.Repeat("x", 301))}
	made, warnings, err := task.Validate(request(t, messages), now, limits)
	if err != nil {
		t.Fatal(err)
	}
	if got := made.Context.ConversationHistory.Messages[0].Content; got != strings.Repeat("x", 200)+" ... (truncated, original: 301 chars)" {
		t.Errorf("got %q", got)
	}
	if len(warnings) != 1 || warnings[0].Message != "conversation_history has 2 messages, truncating to most recent 1" {
		t.Errorf("%+v", warnings)
	}
	for _, limit := range []int{1, 50, 100, 101, 150, 199, 200} {
		made, _, err := task.Validate(request(t, messages[1:]), now, task.Limits{UserMaxChars: limit})
		kept, _, _ := strings.Cut(made.Context.ConversationHistory.Messages[0].Content, " ...")
		if err != nil || len(kept) != limit/2 {
			t.Errorf("of a limit of %d, %d characters are kept, %v", limit, len(kept), err)
		}
	}
}

func TestTimestamps(t *testing.T) {
	for name, test := range map[string]struct {
		timestamps     []string // as JSON
		oldest, newest string
	}{
		"moments, not texts": {[]string{`"2025-10-29T10:00:00+02:00"`, `"2025-10-29T09:30:00Z"`, `"2025-10-29T05:00:00-04:00"`}, "2025-10-29T10:00:00+02:00", "2025-10-29T09:30:00Z"},
		"without a zone":     {[]string{`"2025-10-29T10:00:00"`, `"2025-10-29T11:00:00+02:00"`}, "2025-10-29T11:00:00+02:00", "2025-10-29T10:00:00"},
		"fractions":          {[]string{`"2025-10-29T10:00:00.2"`, `"2025-10-29T10:00:00.123456"`, `"2025-10-29T10:00:00,3"`}, "2025-10-29T10:00:00.123456", "2025-10-29T10:00:00,3"},
		"dates":              {[]string{`"2025-10-30"`, `"2025-10-29T23:59:59Z"`, `"20251028"`}, "20251028", "2025-10-30"},
		"other forms":        {[]string{`"2025-10-29 10:00"`, `"20251029T0959Z"`, `"2025-10-29T10:00:01+0000"`, `"2025-10-29t10z"`}, "20251029T0959Z", "2025-10-29T10:00:01+0000"},
		"unreadable":         {[]string{`"yesterday"`, `"2025-10-29T10:00:00"`, `1761732000`, `"2025-13-01"`, `"2025-10-29T25:00"`, `"2025-10-29T"`}, "2025-10-29T10:00:00", "2025-10-29T10:00:00"},
		"nothing readable":   {[]string{`"yesterday"`, `"noon"`}, "", ""},
		"missing":            {[]string{`null`, `""`, `"2025-10-29T10:00:00"`}, "2025-10-29T10:00:00", "2025-10-29T13:30:00Z"},
		"equal":              {[]string{`"2025-10-29T12:00:00+02:00"`, `"2025-10-29T10:00:00Z"`}, "2025-10-29T12:00:00+02:00", "2025-10-29T12:00:00+02:00"},
	} {
		t.Run(name, func(t *testing.T) {
			var messages []string
			for _, timestamp := range test.timestamps {
				messages = append(messages, `{"role":"user","content":"a","timestamp":`+timestamp+`}`)
			}
			made, _ := validated(t, "["+strings.Join(messages, ",")+"]")
			got := made.Context.ConversationHistory.Metadata
			if got.OldestMessage != test.oldest || got.NewestMessage != test.newest || got.CollectionTime != "2025-10-29T13:30:00Z" {
				t.Errorf("got %+v, want %q and %q", got, test.oldest, test.newest)
			}
		})
	}
}

func TestUnreadableTimestampsStayAsText(t *testing.T) {
	made, warnings := validated(t, `[{"role":"user","content":"a","timestamp":"2025-10-29"},{"role":"user","content":"a","timestamp":"yesterday"},{"role":"user","content":"a","timestamp":1761732000}]`)
	if len(warnings) != 1 || warnings[0].Severity != task.Low || warnings[0].Message != "conversation_history has 2 timestamps that cannot be read, the first 'yesterday' at index 1" || warnings[0].Suggestion == "" {
		t.Errorf("warnings %+v", warnings)
	}
	messages := made.Context.ConversationHistory.Messages
	if messages[1].Timestamp != "yesterday" || messages[2].Timestamp != "1761732000" {
		t.Errorf("%+v", messages)
	}
	if prompt := task.Prompt(*made); !strings.Contains(prompt, "[2] 👤 User (yesterday):") {
		t.Error(prompt)
	}
}

// model is a Summarizer as others bring it.
type model func(text string, most int) (string, error)

func (m model) Summarize(_ context.Context, text string, most int) (string, error) {
	return m(text, most)
}

func TestSemanticCompression(t *testing.T) {
	draft := func() task.Draft {
		asked := request(t, []any{message("user", strings.Repeat("Short one. ", 800)), message("assistant", strings.Repeat("The database is slow. ", 40)), message("assistant", "Yes.")})
		asked.Compression = task.Semantic
		checked, _, err := task.Check(asked, now, task.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return checked
	}
	for name, test := range map[string]struct {
		summarizer task.Summarizer
		assistant  string
		warnings   int
	}{
		"a model":                {model(func(string, int) (string, error) { return "The user's database is slow.", nil }), "The user's database is slow. (summarized)", 0},
		"one that says too much": {model(func(_ string, most int) (string, error) { return strings.Repeat("z", most+10), nil }), strings.Repeat("z", 150) + " (summarized)", 0},
		"one that fails":         {model(func(string, int) (string, error) { return "", errors.New("no model") }), "", 2},
		"one that is mute":       {model(func(string, int) (string, error) { return "", nil }), "", 2},
		"none":                   {nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			checked := draft()
			made, warnings, err := checked.Shape(t.Context(), test.summarizer)
			if err != nil || len(warnings) != test.warnings {
				t.Fatalf("%v, %v", warnings, err)
			}
			history := made.Context.ConversationHistory
			user, assistant, short := history.Messages[0], history.Messages[1], history.Messages[2]
			if history.SummarizedCount != 2 || history.TruncatedCount != 0 || !user.Summarized || user.Truncated || short.Summarized {
				t.Errorf("%+v", history)
			}
			if !strings.HasSuffix(user.Content, " (summarized, original: 8800 chars)") || utf8.RuneCountInString(user.Content) > 8000 {
				t.Errorf("the user's message reads %q", user.Content)
			}
			if test.assistant != "" && assistant.Content != test.assistant {
				t.Errorf("the assistant's message reads %q", assistant.Content)
			}
			if !strings.HasPrefix(assistant.Content, "The ") && test.assistant == "" {
				t.Errorf("the assistant's message reads %q", assistant.Content)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checked := draft()
	if _, _, err := checked.Shape(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %v", err)
	}
}
