package metrics

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/metricstest"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

func check(t *testing.T, registry *prometheus.Registry, name string, want ...string) {
	t.Helper()
	if got := metricstest.Values(t, registry, name); !slices.Equal(got, want) {
		t.Errorf("%s is %q, want %q", name, got, want)
	}
}

func TestNoLabelIsUnbounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	for i := range 50 {
		odd := fmt.Sprintf("odd %d", i)
		m.Stage(t.Context(), turn.Stage(odd), time.Second)
		m.ToolCalled("", odd, 0)
		m.ApprovalDecided(odd, time.Second)
		m.Retried("main", continuo.FailureReason(odd))
		m.TurnEnded(odd, time.Second)
		m.Answered(&continuo.Entry{Round: &continuo.Round{Provider: "main", FinishReason: odd}})
	}
	check(t, registry, "continuo_stage_seconds", "approval 50 50", "other 50 50")
	check(t, registry, "continuo_tool_calls_total", "other unknown 50")
	check(t, registry, "continuo_approvals_decided_total", "other 50")
	check(t, registry, "continuo_retries_total", "main other 50")
	check(t, registry, "continuo_turns_total", "other 50")
	check(t, registry, "continuo_rounds_total", "other main 50")
}

func TestStages(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	for _, stage := range stages() {
		m.Stage(t.Context(), stage, 2*time.Second)
	}
	m.ApprovalDecided(turn.ApprovalAllowed, 4*time.Second)
	check(t, registry, "continuo_stage_seconds", "append 1 2", "approval 2 6", "begin 1 2", "build 1 2", "first_delta 1 2", "flush 1 2", "model 1 2", "queue 1 2", "search 1 2", "tool 1 2")
	check(t, registry, "continuo_approvals_decided_total", "allowed 1")
}

func TestCounts(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	m.EventsFlushed(3)
	m.EventsFlushed(4)
	m.ToolCalled("fs.read", turn.ToolOK, 3*time.Second)
	m.ToolCalled("fs.read", turn.ToolDenied, 0)
	m.Answered(&continuo.Entry{Round: &continuo.Round{Provider: "main"}})
	m.Answered(&continuo.Entry{})
	m.TurnEnded(string(continuo.ReasonTimeout), time.Second)
	m.Charged([]continuo.Spending{{
		ProjectID: "p", KeyID: "k", Provider: "main", Model: "m",
		Spent: continuo.Spent{InputTokens: 9, CachedTokens: 4, CacheWriteTokens: 3, OutputTokens: 2, ReasoningTokens: 1, CostNano: 2_500_000_000, Priced: 1},
	}})
	m.Embedded("main", true)
	m.Embedded("main", false)
	m.PageRead(true)
	m.PageRead(true)
	m.PageRead(false)
	check(t, registry, "continuo_entry_pages_total", "memory 2", "store 1")
	check(t, registry, "continuo_events_flushed_total", "7")
	check(t, registry, "continuo_tool_calls_total", "denied fs.read 1", "ok fs.read 1")
	check(t, registry, "continuo_tool_seconds_total", "fs.read 3")
	check(t, registry, "continuo_rounds_total", "none main 1")
	check(t, registry, "continuo_embeddings_total", "error main 1", "finished main 1")
	check(t, registry, "continuo_turns_total", "timeout 1")
	check(t, registry, "continuo_tokens_total", "cache_write m p main 3", "cached m p main 4", "input m p main 9", "output m p main 2", "reasoning m p main 1")
	check(t, registry, "continuo_cost_dollars_total", "m p main 2.5")
	check(t, registry, "continuo_key_tokens_total", "k input p 9", "k output p 2")
	check(t, registry, "continuo_key_cost_dollars_total", "k p 2.5")
}

// Clients can name any model of a pattern, and make keys: after 200 of them, all others are one.
func TestSeriesOfSpendingAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	m.Charged([]continuo.Spending{{ProjectID: "p"}}) // without a key
	for i := range 2 * maxSpenders {
		m.Charged([]continuo.Spending{{ProjectID: "p", KeyID: fmt.Sprint("k", i), Provider: "main", Model: fmt.Sprint(i), Spent: continuo.Spent{CostNano: 1e9, Priced: 1}}})
	}
	for name, want := range map[string]string{
		"continuo_cost_dollars_total":     fmt.Sprintf("other other other %d", maxSpenders+1),
		"continuo_key_cost_dollars_total": fmt.Sprintf("other other %d", maxSpenders),
	} {
		if series := metricstest.Values(t, registry, name); len(series) > maxSpenders+1 || !slices.Contains(series, want) {
			t.Errorf("%s: %d series, the last is %q", name, len(series), series[len(series)-1])
		}
	}
}

func TestGauges(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	ended, _ := m.TurnRuns(), m.TurnRuns()
	_, closed := m.TurnWaits(), m.StreamOpens()
	ended()
	closed()
	m.TurnRecovered()
	m.LeaseLost()
	m.ApprovalRequested()
	check(t, registry, "continuo_turns_running", "1")
	check(t, registry, "continuo_turns_waiting", "1")
	check(t, registry, "continuo_streams_open")
	for _, name := range []string{"continuo_turns_recovered_total", "continuo_leases_lost_total", "continuo_approvals_requested_total"} {
		check(t, registry, name, "1")
	}
}
