package task_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/token"
)

// Whatever a history holds, the prompt of its task has at most 20 000 tokens, and the newest message of the user is
// whole.
func TestPromptsFitTheirTokens(t *testing.T) {
	attached := func(i int) map[string]any {
		return map[string]any{"role": "user", "content": fmt.Sprint("file ", i), "attachments": []map[string]string{{"type": "code", "name": "a.go", "content": strings.Repeat("x := f(y) + 1\n", 280)}}}
	}
	message := func(role, content string) map[string]any { return map[string]any{"role": role, "content": content} }
	tests := map[string]func(i int) map[string]any{
		"long messages": func(i int) map[string]any { return message("user", fmt.Sprint(i, strings.Repeat(" a b c d", 900))) },
		"Chinese": func(i int) map[string]any {
			return message("user", fmt.Sprint(i)+strings.Repeat("登录错误需要修复", 990))
		},
		"digits":         func(i int) map[string]any { return message("user", strings.Repeat(fmt.Sprint(i, " 9081726354 "), 500)) },
		"attachments":    attached,
		"short and long": func(i int) map[string]any { return message("user", strings.Repeat("word ", 1+i*31)) },
		"one dense, dense": func(i int) map[string]any {
			return message("user", strings.Repeat("a", 1000*(i%2))+strings.Repeat("é€", 2000))
		},
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			var messages []map[string]any
			for i := range 50 {
				messages = append(messages, make(i))
			}
			asked := request(t, messages)
			made, warnings, err := task.Validate(asked, now, task.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			prompt := task.Prompt(*made)
			tokens := token.O200k().Count(prompt)
			t.Logf("%d tokens", tokens)
			if tokens > 20_000 || tokens < 15_000 {
				t.Errorf("the prompt has %d tokens", tokens)
			}
			if len(warnings) != 1 || warnings[0].Severity != task.Medium || !strings.Contains(warnings[0].Message, "cut to about") {
				t.Errorf("warnings: %+v", warnings)
			}
			history := made.Context.ConversationHistory
			newest := history.Messages[len(history.Messages)-1]
			if newest.Content != messages[49]["content"] || newest.Truncated {
				t.Errorf("the newest message is cut to %d characters", utf8.RuneCountInString(newest.Content))
			}
			truncated := 0
			for _, one := range history.Messages {
				if one.Truncated {
					truncated++
				}
				if !utf8.ValidString(one.Content) {
					t.Errorf("%q is cut inside a character", one.Content)
				}
			}
			if truncated != history.TruncatedCount || len(history.Messages) != history.TotalMessages {
				t.Errorf("%d of %d are truncated, the history says %d of %d", truncated, len(history.Messages), history.TruncatedCount, history.TotalMessages)
			}
			readsBack(t, *made)
		})
	}
}

// A task whose own fields leave the history little room keeps the newest messages, and says what it left out.
func TestTheOldestMessagesGoLast(t *testing.T) {
	var messages []map[string]string
	for i := range 50 {
		messages = append(messages, message("assistant", fmt.Sprintf("%d %s", i, strings.Repeat("word ", 25))))
	}
	asked := request(t, messages)
	asked.BackgroundContext = strings.Repeat("fact ", 6000)
	asked.RelevantFiles = []string{strings.Repeat("file ", 6000), strings.Repeat("path ", 6000)}
	made, warnings, err := task.Validate(asked, now, task.Limits{MaxFieldChars: 40_000})
	if err != nil {
		t.Fatal(err)
	}
	prompt := task.Prompt(*made)
	history := made.Context.ConversationHistory
	if tokens := token.O200k().Count(prompt); tokens > 20_000 {
		t.Errorf("the prompt has %d tokens", tokens)
	}
	if n := len(history.Messages); n == 0 || n == 50 || !strings.HasPrefix(history.Messages[n-1].Content, "49 ") || history.Gaps[0].LeftOut != 50-n {
		t.Errorf("%d messages, gaps %v", n, history.Gaps)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, "messages are left out") {
		t.Errorf("warnings: %+v", warnings)
	}
	readsBack(t, *made)
}

func TestFieldsThatAreTooLongAreRefused(t *testing.T) {
	asked := task.Request{Description: "d", BackgroundContext: strings.Repeat("fact ", 6000)}
	asked.Constraints = []string{asked.BackgroundContext, asked.BackgroundContext, asked.BackgroundContext}
	_, _, err := task.Validate(asked, now, task.Limits{})
	if want := "at most 20000 are allowed"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
