// Package engine is the one entry point of Continuo: the server, the terminal interface and every other adapter call its
// features, which are packages below it: turns (start), runs, crews, tasks, conversations, and contexts. It composes
// them, and begins and ends them together.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/engine/crews"
	"github.com/continuo-log/continuo/engine/internal/charged"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/engine/recalls"
	"github.com/continuo-log/continuo/engine/replays"
	"github.com/continuo-log/continuo/engine/runs"
	"github.com/continuo-log/continuo/engine/start"
	"github.com/continuo-log/continuo/engine/summary"
	"github.com/continuo-log/continuo/engine/tasks"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/secret"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/vector"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// Engine connects a log with models, views, prompts and tools: its fields are the features that adapters call. It is
// safe for concurrent use.
type Engine struct {
	// Catalog has the models and agents, Turns the turns of conversations, and Contexts what a reader of one sees.
	Catalog       *catalog.Catalog
	Conversations *conversations.Conversations
	Turns         *start.Turns
	Contexts      *contexts.Contexts
	Runs          *runs.Runs
	Crews         *crews.Crews
	Tasks         *tasks.Tasks
	// Recalls finds the earlier entries that messages need.
	Recalls *recalls.Recalls
	// Summaries makes the summaries that views and roles need.
	Summaries *summary.Summaries
	// Memories has what is known of users.
	Memories *memories.Memories
	// Replays answers recorded messages again, in other variants.
	Replays *replays.Replays
	// Ledger has what requests to models used.
	Ledger *ledger.Ledger

	log    *continuo.Log
	logger *slog.Logger
	life   *lifecycle.Lifecycle
	keeper *turn.Keeper
	driver *durable.Driver // of workflows and crews
}

// Options configures an Engine.
type Options struct {
	// Models are the models that turns can use, by the names that requests give. At least Default must be there.
	Models  map[string]catalog.Upstream
	Default string
	// Serve finds the models of clients' requests that are not in Models; see catalog.Options. Default none.
	Serve func(name, protocol string) (catalog.Upstream, bool)
	// Listed lists names that Serve finds; see catalog.Options. Default none.
	Listed func(ctx context.Context, credentials http.Header) []string
	// Views are the figures of the presets. Default window.DefaultSettings.
	Views *window.Settings
	// Prompts makes the system messages. Default: the embedded ones.
	Prompts prompt.Prompts
	// Tools are the tools that turns may offer, Policy says which of them may run. Default none.
	Tools  tool.Source
	Policy tool.Policy
	// Agents are the agents that may answer, by their ids. Default none.
	Agents map[string]catalog.Agent
	// Summarizer names the model that makes summaries of conversations, for views whose strategy is summarize. Default
	// "": the built-in one, which picks sentences.
	Summarizer string
	// Memory says whether facts are extracted from conversations, and by what; its Logger is the engine's. Default: they are
	// not.
	Memory memories.Options
	// Workflows are the workflows that can run. Default none.
	Workflows runs.Source
	// Crews are the crews that can run, CrewDefaults the defaults for their files. Default none.
	Crews        crews.Source
	CrewDefaults crews.RoleDefaults
	// Handoff bounds tasks; MaxAgents the agents that work at once for a project in this process, default 8;
	// AgentTimeout the work of one agent, default 30 min.
	Handoff      task.Limits
	MaxAgents    int
	AgentTimeout time.Duration
	// TakeUp lets this process resume the work of agents whose process is gone; it is meant for long-lived processes.
	// Where it is false, other processes resume such work.
	TakeUp bool
	// StepPause is how long a run waits between two of its turns, so that turns in other processes can get the
	// conversation. Default 100 ms.
	StepPause time.Duration
	// Limits bound each turn. Default as turn.Limits says.
	Limits turn.Limits
	// Turns configures the keeper of turns; the engine sets Log, Observe and Measure.
	Turns turn.KeeperOptions
	// Wait is how long a turn waits for another one of its conversation. Default 60 s.
	Wait time.Duration
	// MaxTurns bounds the turns of a project that run in this process or wait for their conversation. Default 0: no
	// bound.
	MaxTurns int
	// Budgets are what requests to models may use; its Key finds the keys of callers. Default: no bounds.
	Budgets ledger.BudgetOptions
	// Index is the full-text index of the log. Default: none, and only single conversations can be searched.
	Index index.Store
	// RecallThreshold is the probability, in millionths, below which a turn recalls no entry. Default
	// recalls.DefaultThreshold.
	RecallThreshold int
	// RecallScope is where turns look for earlier entries. Default lookup.Conversation.
	RecallScope lookup.Scope
	// Embedder makes embeddings of entries in the background, and of queries of searches and of the view recall; turns do not
	// wait for it but in the tool conversation.search. Default nil: entries are found by their words alone.
	Embedder vector.Embedder
	// Reranker reorders the first entries of recalls, in turns too, of the view recall, and of searches for questions. Default nil: the
	// words' order stands.
	Reranker reorder.Reranker
	// Archivist archives and restores conversations. Default: none can be archived.
	Archivist *maintenance.Archivist
	// Logger receives log events. Default: none are logged.
	Logger *slog.Logger
	// Redact removes secrets from the reasons for which a role of a crew failed. Default: removes what has the form of a
	// key.
	Redact func(text string) string
	// LogText puts message text into log events. Default false.
	LogText bool
	// Tracer makes the span of each turn. Default none.
	Tracer trace.Tracer
}

// New makes an engine over a log. Metrics may be nil.
func New(log *continuo.Log, options Options, m *metrics.Metrics) (*Engine, error) {
	if options.Redact == nil {
		options.Redact = secret.Text
	}
	options.Wait = cmp.Or(options.Wait, time.Minute)
	options.StepPause = cmp.Or(options.StepPause, 2*durable.TurnPoll)
	options.MaxAgents = cmp.Or(options.MaxAgents, 8)
	options.AgentTimeout = cmp.Or(options.AgentTimeout, 30*time.Minute)
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if m == nil {
		m = metrics.NewMetrics(nil)
	}
	if options.Tracer == nil {
		options.Tracer = noop.Tracer{}
	}
	return compose(log, options, m)
}

// vectorsOf finds entries by embeddings; nil without an Embedder.
func vectorsOf(options Options) *vector.Finder {
	if options.Embedder == nil || options.Index == nil {
		return nil
	}
	return &vector.Finder{Store: options.Index, Embedder: options.Embedder, Failed: func(ctx context.Context, err error) {
		options.Logger.WarnContext(ctx, "not_compared_by_embeddings", "error", err.Error())
	}}
}

// mergerOf reorders entries by the reranker; nil without one.
func mergerOf(options Options) *reorder.Merger {
	if options.Reranker == nil {
		return nil
	}
	return &reorder.Merger{Reranker: options.Reranker, Failed: func(ctx context.Context, err error) {
		options.Logger.WarnContext(ctx, "not_reranked", "error", fmt.Sprint(err))
	}}
}

// compose makes the features; each has those below it.
func compose(log *continuo.Log, options Options, m *metrics.Metrics) (*Engine, error) {
	requests := charged.Requests{Log: log, Admit: ledger.NewBudgets(log, options.Budgets).Admit}
	if options.Embedder != nil {
		options.Embedder = chargedEmbedder{options.Embedder, requests}
	}
	if options.Reranker != nil {
		options.Reranker = chargedReranker{options.Reranker, requests}
	}
	vectors, reranker := vectorsOf(options), mergerOf(options)
	recalled := recalls.New(lookup.Finder{
		Log: log, Store: options.Index, Common: &lookup.CommonTerms{}, Lists: &lookup.TermLists{}, Entries: &lookup.Entries{},
		Analyzer: &recall.Analyzer{}, Vectors: vectors, Reranker: reranker,
	}, recalls.Options{
		Threshold: options.RecallThreshold, Scope: options.RecallScope, Logger: options.Logger,
	})
	catalog, err := catalog.New(log, catalog.Options{
		Models: options.Models, Default: options.Default, Serve: options.Serve, Listed: options.Listed, Views: options.Views, Prompts: options.Prompts, Tools: options.Tools,
		Policy: options.Policy, Agents: options.Agents, Limits: options.Limits, Handoff: options.Handoff, Recaller: recalled,
	})
	if err != nil {
		return nil, err
	}
	if _, err := catalog.Upstream(options.Summarizer); err != nil {
		return nil, fmt.Errorf("engine: the summarizer: %w", err)
	}
	if _, err := catalog.Upstream(options.Memory.Extractor); err != nil {
		return nil, fmt.Errorf("engine: the extractor of memory: %w", err)
	}
	e := &Engine{Recalls: recalled, Ledger: ledger.New(log), log: log, Catalog: catalog, logger: options.Logger, life: lifecycle.New(options.MaxTurns)}
	takeUp := func(ctx context.Context, seen continuo.Turn) (turn.Recovery, error) { return e.Tasks.TakeUp(ctx, seen) }
	afterTurn := func(conversation continuo.Conversation, ended continuo.Turn, runner *turn.Runner) {
		e.Memories.AfterTurn(conversation)
		e.Summaries.AfterTurn(conversation, ended, runner)
	}
	e.Turns, e.keeper = start.New(log, catalog, e.life, m, start.Options{
		After: afterTurn, Keeper: options.Turns, TakeUp: takeUp, Requests: requests, Wait: options.Wait,
		Logger: options.Logger, LogText: options.LogText, Tracer: options.Tracer,
	})
	options.Memory.Logger, options.Memory.Requests = options.Logger, requests
	e.Memories = memories.New(log, catalog, e.life, e.keeper, options.Memory)
	recalled.SetFacts(e.Memories)
	catalog.Options.Profiler = e.Memories
	e.Summaries = summary.New(log, catalog, e.life, e.keeper, m, summary.Options{Summarizer: options.Summarizer, Requests: requests, Logger: options.Logger, LogText: options.LogText})
	e.driver = durable.New(durable.Options{
		Log: log, Keeper: e.keeper, Open: e.openRun, Follow: e.Turns.Follow, IsTransient: start.IsTransient, Working: m.RunDriven,
		Redact: options.Redact, Wait: options.Wait, StepPause: options.StepPause, Logger: options.Logger,
		Draining: e.life.Draining, Closing: e.life.Closing,
	})
	e.Contexts = contexts.New(log, catalog, recalled)
	e.Replays = replays.New(log, e.Contexts, e.life, replays.Options{Requests: requests, Timeout: options.Limits.Turn})
	e.Runs = runs.New(log, catalog, e.Turns, e.life, e.keeper, e.driver, m, runs.Options{
		Workflows: options.Workflows, Wait: options.Wait, Logger: options.Logger, LogText: options.LogText,
	})
	e.Crews = crews.New(log, catalog, e.Summaries, e.Turns, e.Contexts, e.life, e.driver, m, crews.Options{
		Crews: options.Crews, Defaults: options.CrewDefaults, Wait: options.Wait, Redact: options.Redact, Logger: options.Logger, LogText: options.LogText,
	})
	e.Contexts.SetReaders(contexts.Readers{Role: e.Crews.ChooseRoleAt, Step: e.Runs.ChooseStepAt})
	e.Tasks = tasks.New(log, catalog, e.Turns, e.life, e.keeper, m, tasks.Options{
		Handoff: options.Handoff, MaxAgents: options.MaxAgents, AgentTimeout: options.AgentTimeout, TakeUp: options.TakeUp, Requests: requests,
		Logger: options.Logger, LogText: options.LogText,
	})
	e.Conversations = conversations.New(log, conversations.Options{
		Index: options.Index, Vectors: vectors, Reranker: reranker, Archivist: options.Archivist, Logger: options.Logger, LogText: options.LogText,
		Searched: func(ctx context.Context, took time.Duration) { m.Stage(ctx, metrics.StageSearch, took) },
	})
	return e, nil
}

// openRun makes the execution of a run: of a workflow's run, or of a crew's cycle.
func (e *Engine) openRun(run continuo.Run) durable.Execution {
	if _, cycle := continuo.CrewOf(run.WorkflowID); cycle {
		return e.Crews.Execution(run)
	}
	return e.Runs.Execution(run)
}

// Drain stops new work: turns and runs are refused with ErrClosing, runs stop between their steps, and readers of
// runs without a running turn get ErrClosing. Close does it too.
func (e *Engine) Drain() { e.life.Drain() }

// Draining is a context that ends when the engine begins nothing more, so that goroutines that only wait or watch can
// end.
func (e *Engine) Draining() context.Context { return e.life.Draining }

// Close waits for running turns until ctx is done, then interrupts them: each ends with an entry that says so. It
// returns when the last one has ended. It may be called twice.
func (e *Engine) Close(ctx context.Context) error {
	e.Drain()
	done := make(chan struct{})
	go func() {
		e.life.Wait()
		e.driver.Wait()
		close(done)
	}()
	defer e.Crews.CloseSessions()
	select {
	case <-done:
		e.life.End(turn.ErrInterrupted)
		return nil
	case <-ctx.Done():
		e.life.End(turn.ErrInterrupted)
		<-done
		return nil
	}
}

// RunExclusive runs a function that only one process of those with the same store may run at a time: see
// [turn.Keeper.RunExclusive].
func (e *Engine) RunExclusive(ctx context.Context, name string, elsewhere func(owner string), do func(ctx context.Context) error) error {
	return e.keeper.RunExclusive(ctx, name, elsewhere, do)
}

// Ready reports whether the store answers.
func (e *Engine) Ready(ctx context.Context) error {
	_, err := e.log.Conversations(ctx, continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Limit: 1})
	return err
}
