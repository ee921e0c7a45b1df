package task_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/task"
)

func entry(role continuo.Role, text string) continuo.Entry {
	return continuo.Entry{Role: role, Content: continuo.Text(text), CreatedAt: now.Add(-time.Hour)}
}

func calls(text string, calls ...continuo.ToolCall) continuo.Entry {
	e := entry(continuo.Assistant, text)
	if text == "" {
		e.Content = continuo.Null()
	}
	e.ToolCalls = calls
	return e
}

func result(id, outcome, text string) continuo.Entry {
	e := entry(continuo.Tool, text)
	e.ToolCallID, e.ToolName, e.Outcome = id, "fs_read", outcome
	return e
}

func with(e continuo.Entry, change func(*continuo.Entry)) continuo.Entry {
	change(&e)
	return e
}

func TestMessagesOfEntries(t *testing.T) {
	read := func(id, path string) continuo.ToolCall {
		return continuo.FunctionCall(id, "fs_read", `{"path":"`+path+`"}`)
	}
	for name, test := range map[string]struct {
		entries []continuo.Entry
		want    []string // role: content
	}{
		"system and hidden": {[]continuo.Entry{
			entry(continuo.System, "rules"), entry(continuo.User, "hi"),
			with(entry(continuo.Assistant, "for people"), func(e *continuo.Entry) { e.Hidden = true }),
			with(entry(continuo.System, "go on"), func(e *continuo.Entry) { e.PartType = continuo.PartStep }), entry(continuo.Assistant, "hello"),
		}, []string{"user: hi", "assistant: hello"}},
		"a group": {[]continuo.Entry{
			calls("I look\ninto it.", read("a", "config.yml"), read("b", "none")),
			result("a", "Read config.yml", "database:\n  host: localhost"),
			with(result("b", "", "\nno such file\nstack"), func(e *continuo.Entry) { e.PartType = continuo.PartToolError }),
			entry(continuo.Assistant, "The host\nis localhost."),
		}, []string{
			`assistant: I look into it. called fs_read({"path":"config.yml"}) -> Read config.yml; fs_read({"path":"none"}) -> failed: no such file`,
			"assistant: The host\nis localhost.",
		}},
		"results that are missing or say little": {[]continuo.Entry{
			calls("", read("a", "1"), read("b", "2"), read("c", "3"), read("d", "4")),
			with(result("a", "", ""), func(e *continuo.Entry) { e.PartType = continuo.PartInterrupted }), result("b", "", " "),
			with(result("c", "secret", ""), func(e *continuo.Entry) { e.Hidden = true }), entry(continuo.User, "well?"),
		}, []string{
			`assistant: called fs_read({"path":"1"}) -> interrupted:; fs_read({"path":"2"}) -> (no output); fs_read({"path":"3"}) -> no result; fs_read({"path":"4"}) -> no result`,
			"user: well?",
		}},
		"ids that are shared": {
			[]continuo.Entry{calls("", read("x", "1"), read("x", "2")), result("x", "one", ""), result("x", "two", "")},
			[]string{`assistant: called fs_read({"path":"1"}) -> one; fs_read({"path":"2"}) -> two`},
		},
		"a range that begins in a group": {[]continuo.Entry{result("a", "Read config.yml", "x")}, []string{"assistant: fs_read -> Read config.yml"}},
		"a partial answer": {[]continuo.Entry{with(entry(continuo.Assistant, "The host is"), func(e *continuo.Entry) {
			e.Error = &continuo.TurnError{Reason: continuo.ReasonTimeout, Message: "no byte\nin 60 s"}
		})}, []string{"assistant: [broke off: timeout no byte in 60 s] The host is"}},
		"no answer": {[]continuo.Entry{with(entry(continuo.Assistant, ""), func(e *continuo.Entry) {
			e.Error = &continuo.TurnError{Reason: continuo.ReasonRateLimit}
		})}, []string{"assistant: [failed: rate_limit]"}},
		"redacted": {[]continuo.Entry{
			with(entry(continuo.User, "[redacted]"), func(e *continuo.Entry) { e.Redacted = &continuo.Redaction{} }),
			with(calls("", continuo.FunctionCall("a", "fs_read", "{}")), func(e *continuo.Entry) { e.Redacted = &continuo.Redaction{} }),
			with(result("a", "", "[redacted]"), func(e *continuo.Entry) { e.Redacted = &continuo.Redaction{} }),
		}, []string{"user: [redacted]", "assistant: [redacted] called fs_read({}) -> [redacted]"}},
		"authors": {[]continuo.Entry{
			with(entry(continuo.Assistant, "I object."), func(e *continuo.Entry) {
				e.Author = &continuo.Author{RoleName: "critic", DisplayName: "The\nCritic"}
			}),
			with(entry(continuo.Assistant, "Why?"), func(e *continuo.Entry) { e.Author = &continuo.Author{RoleName: "writer", AgentName: "gpt"} }),
			with(entry(continuo.Assistant, " .....\n"), func(e *continuo.Entry) { e.Author = &continuo.Author{RoleName: "critic"} }),
			with(entry(continuo.User, "Stop."), func(e *continuo.Entry) { e.Name = "ann" }),
		}, []string{"assistant: The Critic: I object.", "assistant: writer: Why?", "user: ann: Stop."}},
		"parts": {[]continuo.Entry{with(entry(continuo.User, ""), func(e *continuo.Entry) {
			e.Content = continuo.Parts(continuo.TextPart("See:"), continuo.Part{Type: "image_url"}, continuo.Part{Type: "input_audio"}, continuo.Part{Type: "thinking"})
		})}, []string{"user: See:\n[image]\n[audio]\n[thinking]"}},
		"nothing said": {[]continuo.Entry{entry(continuo.User, " "), with(entry(continuo.Assistant, ""), func(e *continuo.Entry) { e.Content = continuo.Null() })}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, message := range task.FromEntries(test.entries) {
				got = append(got, fmt.Sprintf("%s: %s", message.Role, message.Content))
				if message.Timestamp != "2025-10-29T12:30:00Z" {
					t.Errorf("timestamp %s", message.Timestamp)
				}
			}
			if strings.Join(got, "\n--\n") != strings.Join(test.want, "\n--\n") {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestAGroupIsBounded(t *testing.T) {
	group := []continuo.Entry{calls(strings.Repeat("long ", 10_000))}
	for i := range 30 {
		id := fmt.Sprint(i)
		group[0].ToolCalls = append(group[0].ToolCalls, continuo.FunctionCall(id, strings.Repeat("n", 500), strings.Repeat("[1, ", 100_000)))
		group = append(group, result(id, "", strings.Repeat("o", 100_000)))
	}
	messages := task.FromEntries(group)
	if len(messages) != 1 || utf8.RuneCountInString(messages[0].Content) > 4000 || !strings.HasSuffix(messages[0].Content, "; and 22 more") {
		t.Errorf("%d messages, the first of %d characters", len(messages), utf8.RuneCountInString(messages[0].Content))
	}
	if strings.Contains(messages[0].Content, "\n") {
		t.Error("a group is one line")
	}
}

func TestTheResultOfALargeOutput(t *testing.T) {
	preview := continuo.Preview{Head: "first line\nsecond\n", Tail: "last\n", Chars: 500_000, Bytes: 500_000, Lines: 9}
	large := result("a", "", preview.String())
	large.Output = &continuo.Output{Head: len(preview.Head), Tail: len(preview.Tail), Chars: preview.Chars, Bytes: preview.Bytes, Lines: preview.Lines}
	messages := task.FromEntries([]continuo.Entry{calls("", continuo.FunctionCall("a", "fs_read", "{}")), large})
	if want := "called fs_read({}) -> first line"; messages[0].Content != want {
		t.Errorf("got %q, want %q", messages[0].Content, want)
	}
}
