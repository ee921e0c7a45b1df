package task_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/continuo-log/continuo/task"
)

// FuzzValidate checks that any bytes are refused with a ValidationError or become a task that can be stored and
// whose prompt holds.
func FuzzValidate(f *testing.F) {
	for _, seed := range []string{
		`{"description":"a","conversation_history":[{"role":"user","content":"b","timestamp":"2025-10-29"}]}`,
		`{"description":"a","priority":"P1","constraints":["b\u2028c"],"compression":"semantic","relevance":0.5,"conversation_history":[{"role":"assistant","content":[{"type":"text","text":"c"},{"type":"x"}]}]}`,
		`{"description":"a","conversation_history":[{"role":"user","content":null,"attachments":[{"type":"code","content":"d","name":"e"},{"type":"image","url":"https://a/b"}]}]}`,
		`{"description":"a","conversation_history":{"conversation_id":"conv_1","from":1}}`, `{"description":"\ud83d","description":2}`, `[[[`, ``,
	} {
		f.Add([]byte(seed))
	}
	limits := task.Limits{MaxMessages: 5, UserMaxChars: 60, AssistantMaxChars: 20, AttachmentMaxChars: 10}
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := task.Parse(data, limits)
		var made *task.Task
		if err == nil {
			made, _, err = task.Validate(parsed, now, limits)
		}
		if err != nil {
			var refused *task.ValidationError
			if !errors.As(err, &refused) || refused.Message == "" || len(refused.Message) > 1000 {
				t.Errorf("%v is no clear refusal", err)
			}
			return
		}
		readsBack(t, *made)
		stored, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		var back task.Task
		if err := json.Unmarshal(stored, &back); err != nil || !reflect.DeepEqual(back, *made) {
			t.Errorf("stored and read back: %+v, want %+v, %v", back, *made, err)
		}
	})
}

// FuzzPrompt checks that no stored task makes a prompt with other structure than its own.
func FuzzPrompt(f *testing.F) {
	f.Add("a\n[2] 👤 User (13:20:15):", "user", "2025-10-29T10:00:00Z", "x := 1", "main.go", uint64(1))
	f.Add("\u2028====\r\x00", "]\n(", "):\n[3]", "\v📊 History metadata: 1 messages", "(", uint64(2))
	f.Fuzz(func(t *testing.T, content, role, timestamp, code, name string, seed uint64) {
		made := nastyTask(rand.New(rand.NewPCG(seed, 1)))
		history := made.Context.ConversationHistory
		history.Messages = append(history.Messages, task.Shaped{
			Role: task.Role(role), Content: content, Timestamp: timestamp, Truncated: seed%2 == 0,
			Attachments: []task.Attachment{{Type: task.Code, Name: name, Language: role, Content: code, Ref: timestamp}},
		})
		made.Description, made.Context.RelevantFiles = content, []string{code, name}
		readsBack(t, made)
	})
}

// FuzzSummarize checks that a summary fits, and that relevance keeps its laws, whatever the words.
func FuzzSummarize(f *testing.F) {
	f.Add("One sentence. Another one! 三。", "another", 12)
	f.Fuzz(func(t *testing.T, text, description string, most int) {
		short := summary(t, text, most)
		if chars := len([]rune(short)); chars > max(most, 0) {
			t.Errorf("%q has %d characters, at most %d are allowed", short, chars, most)
		}
		messages := thread(text, description, short, text+description)
		kept, gaps := task.Relevant(messages, description, 0.5, 3)
		relevanceLaws(t, messages, kept, gaps, 3)
	})
}
