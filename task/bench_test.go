package task_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/token"
)

// usual is a request with 50 messages as people and orchestrators write them: users' messages of some 150 to 1 200
// characters, answers of some 3 000.
func usual(t testing.TB) task.Request {
	t.Helper()
	question := "The dashboard takes over 10 seconds to load, and I have noticed that we run one query for each post in the ORM layer. Please add an index and a test. "
	answer := "I have looked at user_dashboard.py: each user triggers separate queries for posts, and each post for its comments. I suggest select_related() for foreign keys. "
	var messages []map[string]string
	for i := range 25 {
		at := time.Date(2025, 10, 29, 10, i, 0, 0, time.UTC)
		messages = append(messages,
			map[string]string{"role": "user", "content": fmt.Sprint(i, ": ", strings.Repeat(question, 1+i%8)), "timestamp": at.Format(time.RFC3339)},
			map[string]string{"role": "orchestrator", "content": fmt.Sprint(i, ": ", strings.Repeat(answer, 20)), "timestamp": at.Add(time.Second).Format(time.RFC3339)})
	}
	asked := request(t, messages)
	asked.Description, asked.BackgroundContext = "Make the user dashboard fast", strings.Repeat(answer, 10)
	asked.ExpectedDeliverables = []string{"an index", "a test", "a note in the changelog"}
	asked.SuccessCriteria, asked.Constraints = []string{"the page loads in less than a second"}, []string{"no new dependency"}
	asked.RelevantFiles = []string{"app/user_dashboard.py", "app/models.py"}
	return asked
}

func TestTheTokensOfAUsualTask(t *testing.T) {
	made, warnings, err := task.Validate(usual(t), now, task.Limits{})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, %v", warnings, err)
	}
	prompt := task.Prompt(*made)
	tokens := token.O200k().Count(prompt)
	t.Logf("50 messages: %d characters, %d tokens", len(prompt), tokens)
	if tokens >= 20_000 || len(made.Context.ConversationHistory.Messages) != 50 {
		t.Errorf("the prompt has %d tokens", tokens)
	}
}

// first is a request with the first n messages of another.
func first(t testing.TB, asked task.Request, n int) task.Request {
	t.Helper()
	var messages []json.RawMessage
	if err := json.Unmarshal(asked.ConversationHistory, &messages); err != nil {
		t.Fatal(err)
	}
	history, err := json.Marshal(messages[:n])
	if err != nil {
		t.Fatal(err)
	}
	asked.ConversationHistory = history
	return asked
}

// allocated is how many bytes it takes to validate a request, the second time.
func allocated(t testing.TB, asked task.Request) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	for range 2 {
		runtime.ReadMemStats(&before)
		if _, _, err := task.Validate(asked, now, task.Limits{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
	}
	return after.TotalAlloc - before.TotalAlloc
}

// Three times the messages take three times the work, with some room. Work is counted in bytes, which are the same on
// every machine; the time is BenchmarkValidate's.
func TestTheWorkGrowsWithTheMessages(t *testing.T) {
	for _, compression := range []task.Compression{task.Truncate, task.Semantic} {
		asked := usual(t)
		asked.Compression = compression
		few, many := allocated(t, first(t, asked, 16)), allocated(t, first(t, asked, 48))
		if many > 4*few || many > 4<<20 {
			t.Errorf("%s: 16 messages take %d bytes, 48 take %d", compression, few, many)
		}
	}
}

// BenchmarkLargest validates 50 messages of 8 750 characters: what is not usual.
func BenchmarkLargest(b *testing.B) {
	messages := make([]map[string]string, 50)
	for i := range messages {
		messages[i] = message("user", strings.Repeat("ä word.", 1250))
	}
	asked := request(b, messages)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := task.Validate(asked, now, task.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkValidate validates 50 usual messages. The contract wants less than 10 ms/op.
func BenchmarkValidate(b *testing.B) {
	for _, compression := range []task.Compression{task.Truncate, task.Semantic} {
		b.Run(string(compression), func(b *testing.B) {
			asked := usual(b)
			asked.Compression = compression
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := task.Validate(asked, now, task.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/op")
		})
	}
}

// BenchmarkValidateTwice validates 24 and 48 usual messages side by side. The figure is the ratio of their times, and
// about 2.
func BenchmarkValidateTwice(b *testing.B) {
	for _, compression := range []task.Compression{task.Truncate, task.Semantic} {
		b.Run(string(compression), func(b *testing.B) {
			asked := usual(b)
			asked.Compression = compression
			once, twice := first(b, asked, 24), first(b, asked, 48)
			var short, long time.Duration
			for b.Loop() {
				short += validating(b, once)
				long += validating(b, twice)
			}
			b.ReportMetric(float64(long)/float64(short), "times-at-2n")
		})
	}
}

// validating is how long a request takes to be validated.
func validating(b *testing.B, asked task.Request) time.Duration {
	began := time.Now()
	if _, _, err := task.Validate(asked, now, task.Limits{}); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func BenchmarkPrompt(b *testing.B) {
	made, _, err := task.Validate(usual(b), now, task.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		task.Prompt(*made)
	}
}

func BenchmarkRelevant(b *testing.B) {
	draft, _, err := task.Check(usual(b), now, task.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		task.Relevant(draft.Messages, "Make the user dashboard fast", 0.3, 20)
	}
}

func BenchmarkSummarize(b *testing.B) {
	var messages []struct{ Content string }
	if err := json.Unmarshal(usual(b).ConversationHistory, &messages); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (task.Extractive{}).Summarize(b.Context(), messages[1].Content, 150); err != nil {
			b.Fatal(err)
		}
	}
}
