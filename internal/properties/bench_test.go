package properties

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// BenchmarkBuild builds a request from SQLite for conversations of 1 000 and 100 000 messages, side by
// side in one run: the cost has to follow the window, not the history. x_1000 is the time over that for
// 1 000 messages; rows is how many were read.
func BenchmarkBuild(b *testing.B) {
	sizes := []int{1000, 100_000}
	log, conversations := longConversations(b, sizes)
	for _, name := range []string{window.Codex, window.Continuity, window.Replay, task.HandoffView} {
		view := preset(b, name, nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var spent [2]time.Duration
			var rows int64
			for b.Loop() {
				for i, conversation := range conversations {
					begin := time.Now()
					request, err := turn.Build(context.Background(), log, conversation, conversation.LastSeq, view,
						continuo.Envelope{Model: "gpt-4o"}, model.Info{Name: "gpt-4o", Provider: "openai", Protocol: model.ProtocolOpenAIChat})
					if err != nil {
						b.Fatal(err)
					}
					spent[i] += time.Since(begin)
					rows = request.Plan.Totals.RowsRead
				}
			}
			b.ReportMetric(float64(spent[1])/float64(spent[0]), "x_1000")
			b.ReportMetric(float64(rows), "rows")
		})
	}
}

func longConversations(b *testing.B, sizes []int) (*continuo.Log, []continuo.Conversation) {
	b.Helper()
	store, err := sqlite.Open(context.Background(), filepath.Join(b.TempDir(), "bench.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	log := continuo.NewLog(store, continuo.LogOptions{Counter: token.O200k()})
	var conversations []continuo.Conversation
	for _, size := range sizes {
		entries := make([]continuo.Entry, size)
		for i := range entries {
			entries[i] = continuo.Entry{Role: continuo.User, Content: continuo.Text(fmt.Sprintf("Question %d: what did the committee decide about the third proposal, and who was against it?", i))}
			if i%2 == 1 {
				entries[i] = continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(fmt.Sprintf("Answer %d: it was put off to the next meeting. Two members were against it because the figures were not in yet.", i))}
			}
		}
		conversation, err := log.Import(context.Background(), continuo.Conversation{}, entries)
		if err != nil {
			b.Fatal(err)
		}
		conversations = append(conversations, conversation)
	}
	return log, conversations
}

// BenchmarkPrefixShare replays conversations of up to 500 rounds with each low-water mark: share_% is how much of the
// requests' bytes extend the request before, mean_kB how large they are, moves how often the window moved. cost_kB is
// what a request costs in bytes at the full price, with those that extend the request before at a tenth of it.
func BenchmarkPrefixShare(b *testing.B) {
	budgets := []struct {
		name   string
		limits func(*stored) window.Limits
	}{
		{"fifth", func(s *stored) window.Limits { return part(s, 5) }},
		{"defaults", func(*stored) window.Limits { return window.Limits{Messages: 80, Chars: 120_000} }},
		{"8k-tokens", func(*stored) window.Limits { return window.Limits{Tokens: 8000} }},
	}
	for _, source := range []string{"beam", "coding-agents", "aider-history", "locomo"} {
		s := longest(b, source, 1000)
		for _, budget := range budgets {
			for _, mark := range []float64{0.3, 0.4, 0.5, 0.6} {
				view := preset(b, window.Codex, nil).(window.View)
				view.Limits, view.LowWater = budget.limits(s), mark
				b.Run(fmt.Sprintf("%s/%s/%.1f", source, budget.name, mark), func(b *testing.B) {
					var g growth
					for b.Loop() {
						g = replayGrowth(b, s, view)
					}
					b.ReportMetric(g.share()*100, "share_%")
					b.ReportMetric(float64(g.bytes)/float64(g.requests)/1000, "mean_kB")
					b.ReportMetric(g.cost()/float64(g.requests)/1000, "cost_kB")
					b.ReportMetric(float64(g.moves), "moves")
					b.ReportMetric(float64(g.requests), "requests")
				})
			}
		}
	}
}
