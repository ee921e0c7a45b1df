package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// Metrics counts what an engine does, for Prometheus. No label has a conversation's id or any other value that
// callers or models can choose freely. It is safe for concurrent use.
type Metrics struct {
	turns              *prometheus.CounterVec
	turnSeconds        prometheus.Histogram
	running            prometheus.Gauge
	waiting            prometheus.Gauge
	recovered          prometheus.Counter
	driving            prometheus.Gauge
	idle               *prometheus.CounterVec
	agents             prometheus.Gauge
	retained           *prometheus.CounterVec
	webhooks           *prometheus.CounterVec
	webhooksLost       *prometheus.CounterVec
	webhooksBehind     *prometheus.GaugeVec
	feedPruned         prometheus.Counter
	processes          prometheus.Gauge
	processEnds        *prometheus.CounterVec
	rolesPaused        prometheus.Counter
	leasesLost         prometheus.Counter
	streams            prometheus.Gauge
	flushed            prometheus.Counter
	stages             map[turn.Stage]prometheus.Observer
	rounds             *prometheus.CounterVec
	embeddings         *prometheus.CounterVec
	tokens             *prometheus.CounterVec
	dollars            *prometheus.CounterVec
	keyTokens          *prometheus.CounterVec
	keyDollars         *prometheus.CounterVec
	spenders, payers   bounded
	windowMoves        *prometheus.CounterVec
	summaries          *prometheus.CounterVec
	entriesShown       *prometheus.CounterVec
	rowsRead           prometheus.Counter
	pages              *prometheus.CounterVec
	retries            *prometheus.CounterVec
	fallbacks          *prometheus.CounterVec
	breaker            *prometheus.GaugeVec
	toolCalls          *prometheus.CounterVec
	toolSeconds        *prometheus.CounterVec
	approvalsRequested prometheus.Counter
	approvalsDecided   *prometheus.CounterVec
}

// The stages besides those of package turn.
const (
	StageQueue    turn.Stage = "queue"    // waiting for the conversation's other turn; near 0 when there is none
	StageApproval turn.Stage = "approval" // waiting for a person's decision on a call
	StageSearch   turn.Stage = "search"   // a search over conversations, outside of turns
)

// stages lists the label values of continuo_stage_seconds.
func stages() []turn.Stage {
	return []turn.Stage{
		StageQueue, turn.StageBegin, turn.StageBuild, turn.StageFirst, turn.StageModel, StageApproval, turn.StageTool, turn.StageAppend, turn.StageFlush,
		StageSearch,
	}
}

// other replaces every unknown label value.
const other = "other"

// NewMetrics makes the series and registers them; registry may be nil.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	r := registration{registry}
	seconds := r.histograms("continuo_stage_seconds", "How long the stages of turns took.",
		[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}, "stage")
	m := &Metrics{
		turns: r.counters("continuo_turns_total", "Turns that ended, by outcome.", "outcome"),
		turnSeconds: r.histogram("continuo_turn_seconds", "How long turns took.",
			[]float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}),
		running:            r.gauge("continuo_turns_running", "Turns in progress in this process."),
		waiting:            r.gauge("continuo_turns_waiting", "Turns that wait for another turn of their conversation."),
		recovered:          r.counter("continuo_turns_recovered_total", "Turns abandoned by another process that this one closed or resumed."),
		driving:            r.gauge("continuo_runs_running", "Runs of workflows that this process executes."),
		idle:               r.counters("continuo_runs_idle_total", "Times that this process had no step left to execute for a run, by the run's state.", "state"),
		processes:          r.gauge("continuo_crew_processes", "Programs of this process that answer for roles of crews."),
		processEnds:        r.counters("continuo_crew_processes_ended_total", "Programs of roles that ended, by reason: exited, stale (another process ran a turn of the role), idle, or shutdown of this process.", "reason"),
		rolesPaused:        r.counter("continuo_crew_roles_paused_total", "Pauses of crew roles after too many failed attempts in a row."),
		retained:           r.counters("continuo_retention_total", "Conversations that the settings of retention made this process archive or delete, by action.", "action"),
		webhooks:           r.counters("continuo_webhook_messages_total", "Messages that this process sent to webhooks, by webhook and outcome: accepted or failed.", "webhook", "outcome"),
		webhooksLost:       r.counters("continuo_webhook_turns_lost_total", "Times that turns were removed from the feed (retention.feed) before a webhook accepted them.", "webhook"),
		webhooksBehind:     r.gauges("continuo_webhook_behind_seconds", "How long ago the turn ended that this process is trying to send to a webhook; 0 when it accepted all.", "webhook"),
		feedPruned:         r.counter("continuo_feed_pruned_total", "Turns that this process removed from the feed of finished turns."),
		agents:             r.gauge("continuo_agents_running", "Agents of tasks that run in this process."),
		leasesLost:         r.counter("continuo_leases_lost_total", "Turns of this process that lost their lease to another process."),
		streams:            r.gauge("continuo_streams_open", "Readers that follow a turn."),
		flushed:            r.counter("continuo_events_flushed_total", "Events of turns that were written to the store."),
		stages:             map[turn.Stage]prometheus.Observer{},
		rounds:             r.counters("continuo_rounds_total", "Model requests, by provider and finish reason.", "provider", "finish_reason"),
		embeddings:         r.counters("continuo_embeddings_total", "Requests for embeddings, by provider and outcome: finished or error.", "provider", "outcome"),
		tokens:             r.counters("continuo_tokens_total", "Tokens that providers reported, by project, model and kind; cached and cache_write are among input, reasoning is among output.", "project", "provider", "model", "kind"),
		dollars:            r.counters("continuo_cost_dollars_total", "What requests to models with a price cost in US dollars, by project and model.", "project", "provider", "model"),
		keyTokens:          r.counters("continuo_key_tokens_total", "Tokens of requests that are charged to an API key, by project, key (its id) and kind: input or output.", "project", "key", "kind"),
		keyDollars:         r.counters("continuo_key_cost_dollars_total", "What requests to models with a price cost that are charged to an API key, in US dollars, by project and key (its id).", "project", "key"),
		windowMoves:        r.counters("continuo_window_moves_total", "Requests for which a view moved its window, by view.", "view"),
		summaries:          r.counters("continuo_summaries_total", "Summaries of conversations, by what made them: a model, or the built-in summarizer.", "maker"),
		entriesShown:       r.counters("continuo_plan_entries_total", "Entries of plans, by verdict.", "verdict"),
		rowsRead:           r.counter("continuo_plan_rows_read_total", "Rows that plans read from the log."),
		pages:              r.counters("continuo_entry_pages_total", "Pages of entries that were read, by source: memory (store.cache_mib) or store.", "source"),
		retries:            r.counters("continuo_retries_total", "Failed model requests that were retried, by provider and reason.", "provider", "reason"),
		fallbacks:          r.counters("continuo_fallbacks_total", "Rounds that used the fallback model, by the provider that failed and the reason.", "provider", "reason"),
		breaker:            r.gauges("continuo_breaker_state", "State of the circuit breaker of an upstream: 0 closed, 1 half open (one trial request), 2 open (no requests).", "upstream"),
		toolCalls:          r.counters("continuo_tool_calls_total", "Tool calls, by tool and outcome.", "tool", "outcome"),
		toolSeconds:        r.counters("continuo_tool_seconds_total", "Total duration of tool calls, by tool.", "tool"),
		approvalsRequested: r.counter("continuo_approvals_requested_total", "Tool calls for which a person was asked to decide."),
		approvalsDecided:   r.counters("continuo_approvals_decided_total", "Tool calls for which a person was asked to decide, by decision.", "decision"),
	}
	for _, stage := range append(stages(), other) {
		m.stages[stage] = seconds.WithLabelValues(string(stage))
	}
	return m
}

// Stage records the duration of a stage of a turn.
func (m *Metrics) Stage(_ context.Context, stage turn.Stage, took time.Duration) {
	seconds, ok := m.stages[stage]
	if !ok {
		seconds = m.stages[other]
	}
	seconds.Observe(took.Seconds())
}

// TurnWaits counts a turn that waits for its conversation until done is called, once: when the turn gets the
// conversation or gives up.
func (m *Metrics) TurnWaits() (done func()) { return enter(m.waiting) }

// TurnRuns counts a running turn until done is called, once.
func (m *Metrics) TurnRuns() (done func()) { return enter(m.running) }

// StreamOpens counts a reader that follows a turn until done is called, once.
func (m *Metrics) StreamOpens() (done func()) { return enter(m.streams) }

func enter(gauge prometheus.Gauge) (leave func()) {
	gauge.Inc()
	return gauge.Dec
}

// TurnRecovered counts a turn whose process was gone and that this process closed.
func (m *Metrics) TurnRecovered() { m.recovered.Inc() }

// RunDriven counts a run with a worker in this process until done is called, once.
func (m *Metrics) RunDriven() (done func()) { return enter(m.driving) }

// RunIdle counts a run that has no step due in this process.
func (m *Metrics) RunIdle(state continuo.RunState) { m.idle.WithLabelValues(string(state)).Inc() }

// RoleStarted counts a start of a role's program.
func (m *Metrics) RoleStarted() { m.processes.Inc() }

// RoleEnded counts a program of a role that ended or was ended.
func (m *Metrics) RoleEnded(why string) {
	m.processes.Dec()
	m.processEnds.WithLabelValues(why).Inc()
}

// RolePaused counts the beginning of a role's cooldown.
func (m *Metrics) RolePaused() { m.rolesPaused.Inc() }

// AgentWorks counts a working agent of a task until done is called, once.
func (m *Metrics) AgentWorks() (done func()) { return enter(m.agents) }

// Retained counts a conversation that retention archived or deleted.
func (m *Metrics) Retained(action string) { m.retained.WithLabelValues(action).Inc() }

// WebhookSent counts a message to a webhook.
func (m *Metrics) WebhookSent(name string, ok bool) {
	outcome := "failed"
	if ok {
		outcome = "accepted"
	}
	m.webhooks.WithLabelValues(name, outcome).Inc()
}

// WebhookLost counts that a webhook will not get turns that were removed from the feed.
func (m *Metrics) WebhookLost(name string) { m.webhooksLost.WithLabelValues(name).Inc() }

// WebhookBehind reports how long ago the turn ended that is being sent to a webhook.
func (m *Metrics) WebhookBehind(name string, behind time.Duration) {
	m.webhooksBehind.WithLabelValues(name).Set(behind.Seconds())
}

// FeedPruned counts turns that were removed from the feed.
func (m *Metrics) FeedPruned(turns int) { m.feedPruned.Add(float64(turns)) }

// LeaseLost counts a turn of this process that has lost its lease.
func (m *Metrics) LeaseLost() { m.leasesLost.Inc() }

// PageRead counts a page of entries that was read from memory or from the store.
func (m *Metrics) PageRead(fromMemory bool) {
	source := "store"
	if fromMemory {
		source = "memory"
	}
	m.pages.WithLabelValues(source).Inc()
}

// EventsFlushed counts events that were written to the store.
func (m *Metrics) EventsFlushed(count int) { m.flushed.Add(float64(count)) }

// ToolCalled counts a tool call and its run time, 0 when it did not run. Tool is the name of an existing tool, "" for
// a name that the model made up; the outcomes are turn's Tool constants.
func (m *Metrics) ToolCalled(tool, outcome string, took time.Duration) {
	if tool == "" {
		tool = "unknown"
	}
	m.toolCalls.WithLabelValues(tool, known(outcome, turn.ToolOK, turn.ToolFailed, turn.ToolTimeout, turn.ToolCancelled, turn.ToolDenied, turn.ToolNotRun)).Inc()
	m.toolSeconds.WithLabelValues(tool).Add(took.Seconds())
}

// ApprovalRequested counts a call that waits for a person's approval.
func (m *Metrics) ApprovalRequested() { m.approvalsRequested.Inc() }

// ApprovalDecided counts the result of such a call; the decisions are turn's Approval constants. It also records
// StageApproval.
func (m *Metrics) ApprovalDecided(decision string, waited time.Duration) {
	m.approvalsDecided.WithLabelValues(known(decision, turn.ApprovalAllowed, turn.ApprovalDenied, turn.ApprovalExpired, turn.ApprovalCancelled)).Inc()
	m.Stage(context.Background(), StageApproval, waited)
}

// Retried counts a model request that failed and is tried again.
func (m *Metrics) Retried(provider string, reason continuo.FailureReason) {
	m.retries.WithLabelValues(provider, reasonLabel(reason)).Inc()
}

// BreakerState records the state of an upstream's circuit breaker: 0 closed, 1 half open, 2 open.
func (m *Metrics) BreakerState(upstream string, state int) {
	m.breaker.WithLabelValues(upstream).Set(float64(state))
}

func (m *Metrics) Planned(plan *window.Plan) {
	if plan.Moved {
		m.windowMoves.WithLabelValues(plan.View).Inc()
	}
	totals := plan.Totals
	m.entriesShown.WithLabelValues("kept").Add(float64(totals.Kept - totals.Previewed - totals.Truncated))
	m.entriesShown.WithLabelValues("previewed").Add(float64(totals.Previewed))
	m.entriesShown.WithLabelValues("truncated").Add(float64(totals.Truncated))
	m.entriesShown.WithLabelValues("summarized").Add(float64(totals.Summarized))
	m.entriesShown.WithLabelValues("dropped").Add(float64(totals.Dropped))
	m.entriesShown.WithLabelValues("excluded").Add(float64(totals.Excluded))
	m.rowsRead.Add(float64(totals.RowsRead))
}

// Extractive is the name of the built-in summarizer.
const Extractive = "extractive"

// Summarized counts a summary by its maker: "extractive", or the name of a model.
func (m *Metrics) Summarized(by string) {
	if by != Extractive {
		by = "model"
	}
	m.summaries.WithLabelValues(by).Inc()
}

func (m *Metrics) Answered(entry *continuo.Entry) {
	if round := entry.Round; round != nil {
		m.rounds.WithLabelValues(round.Provider, known(round.FinishReason, "", "stop", "tool_calls", "length", "content_filter")).Inc()
	}
}

// Embedded counts a request for embeddings.
func (m *Metrics) Embedded(provider string, finished bool) {
	outcome := "finished"
	if !finished {
		outcome = "error"
	}
	m.embeddings.WithLabelValues(provider, outcome).Inc()
}

func (m *Metrics) FellBack(failed *turn.Attempt) {
	m.fallbacks.WithLabelValues(failed.Round.Provider, reasonLabel(failed.Error.Reason)).Inc()
}

// TurnEnded counts a turn; the outcome is finished, error or a failure's reason.
func (m *Metrics) TurnEnded(outcome string, took time.Duration) {
	if outcome != "finished" && outcome != "error" {
		outcome = reasonLabel(continuo.FailureReason(outcome))
	}
	m.turns.WithLabelValues(outcome).Inc()
	m.turnSeconds.Observe(took.Seconds())
}

// maxSpenders bounds the projects and models, and the keys, that series of spending name: clients can name any model of a
// pattern, and make keys.
const maxSpenders = 200

// bounded are the label values that have series of their own; those of all later ones are other.
type bounded struct {
	mu    sync.Mutex
	known map[[3]string]bool
}

func (b *bounded) of(labels [3]string) [3]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.known[labels] {
		if len(b.known) >= maxSpenders {
			return [3]string{other, other, other}
		}
		if b.known == nil {
			b.known = map[[3]string]bool{}
		}
		b.known[labels] = true
	}
	return labels
}

// Charged counts what requests to models used and cost. Of more than 200 projects and models, or keys, the later ones are other.
func (m *Metrics) Charged(charges []continuo.Spending) {
	for i := range charges {
		used := &charges[i]
		by := m.spenders.of([3]string{used.ProjectID, used.Provider, used.Model})
		for kind, count := range map[string]int64{
			"input": used.InputTokens, "cached": used.CachedTokens, "cache_write": used.CacheWriteTokens, "output": used.OutputTokens, "reasoning": used.ReasoningTokens,
		} {
			m.tokens.WithLabelValues(by[0], by[1], by[2], kind).Add(float64(count))
		}
		cost := float64(used.CostNano) / 1e9
		if used.Priced > 0 {
			m.dollars.WithLabelValues(by[0], by[1], by[2]).Add(cost)
		}
		if used.KeyID == "" {
			continue
		}
		by = m.payers.of([3]string{used.ProjectID, used.KeyID})
		m.keyTokens.WithLabelValues(by[0], by[1], "input").Add(float64(used.InputTokens))
		m.keyTokens.WithLabelValues(by[0], by[1], "output").Add(float64(used.OutputTokens))
		if used.Priced > 0 {
			m.keyDollars.WithLabelValues(by[0], by[1]).Add(cost)
		}
	}
}

func reasonLabel(reason continuo.FailureReason) string {
	return string(known(reason, "", continuo.ReasonTimeout, continuo.ReasonNetwork, continuo.ReasonRateLimit, continuo.ReasonUpstream,
		continuo.ReasonContentFilter, continuo.ReasonCancelled, continuo.ReasonInterrupted,
		continuo.ReasonContextOverflow, continuo.ReasonTurnLimit, continuo.ReasonBudget))
}

// known replaces a label value that is not among values by other, and "" by none.
func known[T ~string](value T, values ...T) T {
	switch {
	case !slices.Contains(values, value):
		return other
	case value == "":
		return "none"
	}
	return value
}

// registration makes series and registers them if it has a registry.
type registration struct{ registry prometheus.Registerer }

func (r registration) add(series prometheus.Collector) {
	if r.registry != nil {
		r.registry.MustRegister(series)
	}
}

func (r registration) counter(name, help string) prometheus.Counter {
	series := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.add(series)
	return series
}

func (r registration) counters(name, help string, labels ...string) *prometheus.CounterVec {
	series := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.add(series)
	return series
}

func (r registration) gauge(name, help string) prometheus.Gauge {
	series := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.add(series)
	return series
}

func (r registration) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	series := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.add(series)
	return series
}

func (r registration) histogram(name, help string, buckets []float64) prometheus.Histogram {
	series := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.add(series)
	return series
}

func (r registration) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	series := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.add(series)
	return series
}
