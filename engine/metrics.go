package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// Metrics counts what an engine does, for Prometheus. No series is labelled by a conversation.
type Metrics struct {
	turns        *prometheus.CounterVec
	turnSeconds  prometheus.Histogram
	firstDelta   prometheus.Histogram
	rounds       *prometheus.CounterVec
	tokens       *prometheus.CounterVec
	windowMoves  *prometheus.CounterVec
	entriesShown *prometheus.CounterVec
	rowsRead     prometheus.Counter
	retries      *prometheus.CounterVec
	fallbacks    *prometheus.CounterVec
	breaker      *prometheus.GaugeVec
}

// NewMetrics makes the series and registers them; registry may be nil.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	seconds := []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
	m := &Metrics{
		turns:        prometheus.NewCounterVec(prometheus.CounterOpts{Name: "continuo_turns_total", Help: "Turns that ended, by outcome."}, []string{"outcome"}),
		turnSeconds:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "continuo_turn_seconds", Help: "How long turns took.", Buckets: seconds}),
		firstDelta:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "continuo_first_delta_seconds", Help: "How long models took to send the first text.", Buckets: seconds}),
		rounds:       prometheus.NewCounterVec(prometheus.CounterOpts{Name: "continuo_rounds_total", Help: "Model requests, by provider and finish reason."}, []string{"provider", "finish_reason"}),
		tokens:       prometheus.NewCounterVec(prometheus.CounterOpts{Name: "continuo_tokens_total", Help: "Tokens that providers reported, by kind."}, []string{"kind"}),
		windowMoves:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "continuo_window_moves_total", Help: "Requests for which a view's window moved, by view."}, []string{"view"}),
		entriesShown: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "continuo_plan_entries_total", Help: "Entries of plans, by what became of them."}, []string{"verdict"}),
		rowsRead:     prometheus.NewCounter(prometheus.CounterOpts{Name: "continuo_plan_rows_read_total", Help: "Rows that plans read from the log."}),
		retries:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "continuo_retries_total", Help: "Failed model requests that were tried again, by provider and reason."}, []string{"provider", "reason"}),
		fallbacks:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "continuo_fallbacks_total", Help: "Rounds for which the fallback was asked, by the provider that failed and the reason."}, []string{"provider", "reason"}),
		breaker:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "continuo_breaker_state", Help: "Whether an upstream is asked: 0 yes (closed), 1 by one request to try (half open), 2 no (open)."}, []string{"upstream"}),
	}
	if registry != nil {
		registry.MustRegister(m.turns, m.turnSeconds, m.firstDelta, m.rounds, m.tokens, m.windowMoves, m.entriesShown, m.rowsRead, m.retries, m.fallbacks, m.breaker)
	}
	return m
}

func (m *Metrics) planned(plan *continuo.Plan) {
	if plan.Moved {
		m.windowMoves.WithLabelValues(plan.View).Inc()
	}
	totals := plan.Totals
	m.entriesShown.WithLabelValues("kept").Add(float64(totals.Kept - totals.Previewed - totals.Truncated))
	m.entriesShown.WithLabelValues("previewed").Add(float64(totals.Previewed))
	m.entriesShown.WithLabelValues("truncated").Add(float64(totals.Truncated))
	m.entriesShown.WithLabelValues("dropped").Add(float64(totals.Dropped))
	m.entriesShown.WithLabelValues("excluded").Add(float64(totals.Excluded))
	m.rowsRead.Add(float64(totals.RowsRead))
}

func (m *Metrics) answered(entry *continuo.Entry) {
	if entry.Round == nil {
		return
	}
	m.rounds.WithLabelValues(entry.Round.Provider, finishLabel(entry.Round.FinishReason)).Inc()
	if entry.Round.FirstDeltaMS > 0 {
		m.firstDelta.Observe(float64(entry.Round.FirstDeltaMS) / 1000)
	}
}

// Retried counts a model request that failed and is tried again.
func (m *Metrics) Retried(provider string, reason continuo.FailureReason) {
	m.retries.WithLabelValues(provider, string(reason)).Inc()
}

// BreakerState tells of an upstream's breaker: 0 closed, 1 half open, 2 open.
func (m *Metrics) BreakerState(upstream string, state int) {
	m.breaker.WithLabelValues(upstream).Set(float64(state))
}

func (m *Metrics) fellBack(failed *turn.Attempt) {
	m.fallbacks.WithLabelValues(failed.Round.Provider, string(failed.Error.Reason)).Inc()
}

func (m *Metrics) turnEnded(outcome string, begin time.Time, usage continuo.Usage) {
	m.turns.WithLabelValues(outcome).Inc()
	m.turnSeconds.Observe(time.Since(begin).Seconds())
	m.tokens.WithLabelValues("input").Add(float64(usage.InputTokens))
	m.tokens.WithLabelValues("cached").Add(float64(usage.CachedTokens))
	m.tokens.WithLabelValues("output").Add(float64(usage.OutputTokens))
}

// finishLabel keeps a label to the reasons that providers are known to give.
func finishLabel(reason string) string {
	switch reason {
	case "":
		return "none"
	case "stop", "tool_calls", "length", "content_filter":
		return reason
	default:
		return "other"
	}
}
