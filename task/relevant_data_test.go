package task_test

import (
	"os"
	"testing"

	"github.com/continuo-log/continuo/internal/evidence"
	"github.com/continuo-log/continuo/task"
)

// TestRelevanceFindsEvidence hands annotated conversations off with their questions as the descriptions: of the evidence, the
// 50 messages that are kept hold .848 and .777; BM25 with neighbours, the ranking before, held .778 and .559.
func TestRelevanceFindsEvidence(t *testing.T) {
	for name, least := range map[string]float64{"locomo.jsonl.gz": .80, "beam.jsonl.gz": .72} {
		conversations, err := evidence.Load(dataFiles(t, name)[0])
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("CONTINUO_LONG") == "" {
			conversations = conversations[:1]
		}
		var found evidence.Score
		for i := range conversations {
			c := &conversations[i]
			messages := make([]task.Message, len(c.Messages))
			for k := range c.Messages {
				messages[k] = task.Message{Role: task.Role(c.Messages[k].Role), Content: c.Messages[k].Text(), Timestamp: c.Messages[k].Time}
				if c.Messages[k].Name != "" {
					messages[k].Content = c.Messages[k].Name + ": " + messages[k].Content
				}
			}
			for _, q := range c.Questions {
				if len(q.Evidence) == 0 {
					continue
				}
				kept, _ := task.Relevant(messages, q.Question, 0, 50)
				has := map[string]bool{}
				for _, message := range kept {
					has[message.Content] = true
				}
				found.Add(q.Evidence, func(message int) bool { return has[messages[message].Content] })
			}
		}
		share, full := found.Means()
		t.Logf("%s: %.3f / %.3f of %d questions", name, share, full, found.Questions)
		if share < least {
			t.Errorf("%s: %.3f of the evidence is kept, want %.3f", name, share, least)
		}
	}
}
