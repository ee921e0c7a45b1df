package task_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/task"
)

// pieces are what a text could forge structure with.
var pieces = []string{
	"\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029", "\n\n", " ", "    ", "\t", "  ",
	strings.Repeat("=", 80), "🎯 TASK CONTEXT (Provided by task creator)", historyTitle, "📚 RELATED DOCUMENTATION:",
	"[2] 👤 User (13:20:15):", "[1] 🤖 Assistant (13:20:15) [TRUNCATED]:", "[…] 3 messages left out", "  📎 code (go) x.go",
	"📊 History metadata: 3 messages, 2 truncated", "- item", "    - item", "The orchestrator had the following conversation",
	"word", "日本語", "👨‍👩‍👧", "e\u0301", "\u202e", "\u200b", "\ufeff", "\x1b[2J", "\b", "\x00", "\x7f", "\u009b", "\xff", "\xed\xa0\x80", ") [TRUNCATED]:", "(", "]",
}

func nasty(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(8) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

func nastyList(random *rand.Rand) []string {
	var list []string
	for range random.IntN(3) {
		list = append(list, nasty(random))
	}
	return list
}

// nastyTask is a task as a store could return it, from any writer.
func nastyTask(random *rand.Rand) task.Task {
	made := task.Task{Description: nasty(random), Priority: task.Priority(nasty(random)), ClientCwd: nasty(random), Context: task.Context{
		BackgroundContext: nasty(random), ExpectedDeliverables: nastyList(random), SuccessCriteria: nastyList(random),
		Constraints: nastyList(random), RelevantFiles: nastyList(random), RelatedDocumentation: nastyList(random),
	}}
	history := &task.History{TruncatedCount: random.IntN(3)}
	for i := range random.IntN(5) {
		roles := []task.Role{task.User, task.Assistant, task.Orchestrator, task.Role(nasty(random))}
		shaped := task.Shaped{Role: roles[random.IntN(len(roles))], Content: nasty(random), Timestamp: nasty(random), Truncated: random.IntN(2) == 0}
		for range random.IntN(3) {
			shaped.Attachments = append(shaped.Attachments, task.Attachment{
				Type: task.AttachmentType(nasty(random)), Language: nasty(random), Name: nasty(random), Content: nasty(random),
				URL: nasty(random), Ref: nasty(random), Truncated: random.IntN(2) == 0,
			})
		}
		if random.IntN(3) == 0 {
			history.Gaps = append(history.Gaps, task.Gap{Before: i, LeftOut: 1 + random.IntN(3)})
		}
		history.Messages = append(history.Messages, shaped)
	}
	made.Context.ConversationHistory = history
	return made
}

// Whatever a task contains, a reader finds its messages and sections in the prompt and nothing else.
func TestContentForgesNoStructure(t *testing.T) {
	for seed := range uint64(1500) {
		random := rand.New(rand.NewPCG(seed, 1))
		readsBack(t, nastyTask(random))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestControlCharactersAreEscaped(t *testing.T) {
	prompt := task.Prompt(task.Task{Description: "a\x1b[2J\b\x00\x7f\u009bb\tc"})
	if !strings.Contains(prompt, "    a␛[2J␈␀␡\uFFFDb\tc\n") {
		t.Errorf("got %q", prompt)
	}
}

func TestTheHeadersOfMessages(t *testing.T) {
	for name, test := range map[string]struct {
		message task.Shaped
		want    string
	}{
		"user":         {task.Shaped{Role: task.User, Timestamp: "2025-10-29T13:20:15"}, "[1] 👤 User (13:20:15):"},
		"truncated":    {task.Shaped{Role: task.Assistant, Timestamp: "2025-10-29T13:20:15Z", Truncated: true}, "[1] 🤖 Assistant (13:20:15) [TRUNCATED]:"},
		"orchestrator": {task.Shaped{Role: task.Orchestrator, Timestamp: "2025-10-29 13:20:15.123456+05:30"}, "[1] 🎯 Orchestrator (13:20:15):"},
		"other role":   {task.Shaped{Role: "TOOL result", Timestamp: "20251029T132015"}, "[1] 💬 Tool result (13:20:15):"},
		"date only":    {task.Shaped{Role: task.User, Timestamp: "2025-10-29"}, "[1] 👤 User (00:00:00):"},
		"no time":      {task.Shaped{Role: task.User}, "[1] 👤 User (unknown time):"},
		"unreadable":   {task.Shaped{Role: task.User, Timestamp: "at\nnoon (or so)"}, "[1] 👤 User (at noon or so):"},
		"summarized":   {task.Shaped{Role: "", Summarized: true}, "[1] 💬 Unknown (unknown time) [SUMMARIZED]:"},
	} {
		t.Run(name, func(t *testing.T) {
			prompt := task.Prompt(task.Task{Context: task.Context{ConversationHistory: &task.History{Messages: []task.Shaped{test.message}}}})
			if !strings.Contains(prompt, "\n"+test.want+"\n") {
				t.Errorf("want %q in\n%s", test.want, prompt)
			}
		})
	}
}

func TestTheFooterCounts(t *testing.T) {
	messages := make([]task.Shaped, 3)
	for want, history := range map[string]task.History{
		"📊 History metadata: 3 messages\n":                                        {},
		"📊 History metadata: 3 messages, 2 truncated\n":                           {TruncatedCount: 2},
		"📊 History metadata: 3 messages, 1 truncated, 1 summarized, 5 left out\n": {TruncatedCount: 1, SummarizedCount: 1, Gaps: []task.Gap{{Before: 1, LeftOut: 1}, {Before: 2, LeftOut: 4}}},
	} {
		history.Messages = messages
		if prompt := task.Prompt(task.Task{Context: task.Context{ConversationHistory: &history}}); !strings.Contains(prompt, want) {
			t.Errorf("want %q in\n%s", want, prompt)
		}
	}
}
