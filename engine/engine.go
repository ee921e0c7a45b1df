// Package engine is the one entry point of Continuo: the server, the terminal interface and every other adapter call
// it, and it calls the packages below. It looks things up, enforces limits, and decides little.
//
// Turns of one conversation run one after another: within this process in their order of arrival (lanes), across
// processes by the lease that package turn keeps in the store.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/internal/secret"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/upkeep"
	"github.com/continuo-log/continuo/window"
	"github.com/continuo-log/continuo/workflow"
)

// Engine connects a log with models, views, prompts and tools. It is safe for concurrent use.
type Engine struct {
	Log     *continuo.Log
	options Options
	metrics *Metrics
	lanes   lanes
	asked   askedTurns
	quota   quota
	agents  quota // of deployed agents
	keeper  *turn.Keeper
	runs    *durable.Driver // of workflows and crews
	// Parsed texts of the log.
	workflowTexts texts[*workflow.Workflow]
	crewTexts     texts[*crew.Crew]
	sessions      sessionPool // the programs that answer for roles of crews

	mu     sync.Mutex
	closed bool           // no turn may begin
	turns  sync.WaitGroup // including those that wait in a lane
	// draining ends when nothing may begin any more, closing when running work must end.
	draining, closing context.Context
	drain             context.CancelFunc
	close             context.CancelCauseFunc
}

// Options configures an Engine.
type Options struct {
	// Models are the models that turns can use, by the names that requests give. At least Default must be there.
	Models  map[string]Upstream
	Default string
	// Views are the figures of the presets. Default window.DefaultSettings.
	Views *window.Settings
	// Prompts makes the system messages. Default: the embedded ones.
	Prompts prompt.Prompts
	// Tools are the tools that turns may offer, Policy says which of them may run. Default none.
	Tools  tool.Source
	Policy tool.Policy
	// Agents are the agents that may answer, by their ids. Default none.
	Agents map[string]Agent
	// Summarizer names the model that makes summaries of conversations, for views whose strategy is summarize. Default
	// "": the built-in one, which picks sentences.
	Summarizer string
	// Workflows are the workflows that can run. Default none.
	Workflows Workflows
	// Crews are the crews that can run, CrewDefaults the defaults for their files. Default none.
	Crews        Crews
	CrewDefaults CrewOptions
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
	// Archivist archives and restores conversations. Default: none can be archived.
	Archivist *upkeep.Archivist
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

// Upstream is a model with its request options.
type Upstream struct {
	Model           model.Model
	MaxOutputTokens int      // 0: the provider's default
	Temperature     *float64 // nil: the provider's default
	// Speaker handles the model's dialect. Default: the protocol as it is.
	Speaker *model.Speaker
	// Fallback names the model that is used when this one fails before it has produced output; the fallback's own
	// fallback is not used. Default none.
	Fallback string
}

// New makes an engine over a log. Metrics may be nil.
func New(log *continuo.Log, options Options, metrics *Metrics) (*Engine, error) {
	if _, ok := options.Models[options.Default]; !ok {
		return nil, fmt.Errorf("engine: %w: there is no model %q", continuo.ErrInvalid, options.Default)
	}
	for name, upstream := range options.Models {
		if _, ok := options.Models[upstream.Fallback]; !ok && upstream.Fallback != "" {
			return nil, fmt.Errorf("engine: %w: the fallback of the model %s: there is no model %q", continuo.ErrInvalid, name, upstream.Fallback)
		}
	}
	if _, ok := options.Models[options.Summarizer]; !ok && options.Summarizer != "" {
		return nil, fmt.Errorf("engine: %w: the summarizer: there is no model %q", continuo.ErrInvalid, options.Summarizer)
	}
	if options.Views == nil {
		settings := window.DefaultSettings()
		options.Views = &settings
	}
	views := *options.Views
	options.Views = &views
	if options.Redact == nil {
		options.Redact = secret.Text
	}
	options.Wait = cmp.Or(options.Wait, time.Minute)
	options.StepPause = cmp.Or(options.StepPause, 2*otherPoll)
	options.MaxAgents = cmp.Or(options.MaxAgents, 8)
	options.AgentTimeout = cmp.Or(options.AgentTimeout, 30*time.Minute)
	options.CrewDefaults = options.CrewDefaults.orDefaults()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if metrics == nil {
		metrics = NewMetrics(nil)
	}
	if options.Tracer == nil {
		options.Tracer = noop.Tracer{}
	}
	e := &Engine{Log: log, options: options, metrics: metrics, quota: quota{most: options.MaxTurns}, agents: quota{most: options.MaxAgents}}
	e.sessions.options, e.sessions.logger, e.sessions.metrics = options.CrewDefaults, options.Logger, metrics
	e.draining, e.drain = context.WithCancel(context.Background())
	e.closing, e.close = context.WithCancelCause(context.Background())
	options.Turns.Log, options.Turns.Observe, options.Turns.Meter = log, e.observe, meter{metrics, options.Tracer}
	options.Turns.TakeUp = e.takeUp
	e.keeper = turn.NewKeeper(options.Turns)
	e.runs = durable.New(durable.Options{
		Log: log, Keeper: e.keeper, Open: e.openRun, Follow: e.Follow, IsTransient: isTransient, Working: metrics.RunDriven,
		Redact: options.Redact, Wait: options.Wait, StepPause: options.StepPause, Logger: options.Logger, Draining: e.draining, Closing: e.closing,
	})
	return e, nil
}

// Drain stops new work: turns and runs are refused with ErrClosing, runs stop between their steps, and readers of
// runs without a running turn get ErrClosing. Close does it too.
func (e *Engine) Drain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.drain()
}

// Close waits for running turns until ctx is done, then interrupts them: each ends with an entry that says so. It
// returns when the last one has ended. It may be called twice.
func (e *Engine) Close(ctx context.Context) error {
	e.Drain()
	done := make(chan struct{})
	go func() {
		e.turns.Wait()
		e.runs.Wait()
		close(done)
	}()
	defer e.sessions.close()
	select {
	case <-done:
		e.close(turn.ErrInterrupted)
		return nil
	case <-ctx.Done():
		e.close(turn.ErrInterrupted)
		<-done
		return nil
	}
}

// isClosed reports whether the engine begins no more turns.
func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// admit counts a turn of a project, unless the engine is closing or the project has MaxTurns of them; dismiss ends
// the count.
func (e *Engine) admit(project string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosing
	}
	if err := e.quota.enter(project); err != nil {
		return err
	}
	e.turns.Add(1)
	return nil
}

// dismiss ends the count of a turn.
func (e *Engine) dismiss(project string) {
	e.quota.leave(project)
	e.turns.Done()
}

// RunExclusive runs a function that only one process of those with the same store may run at a time: see
// [turn.Keeper.RunExclusive].
func (e *Engine) RunExclusive(ctx context.Context, name string, elsewhere func(owner string), do func(ctx context.Context) error) error {
	return e.keeper.RunExclusive(ctx, name, elsewhere, do)
}

// Models lists the names of the models, the default first.
func (e *Engine) Models() []string {
	names := []string{e.options.Default}
	for name := range e.options.Models {
		if name != e.options.Default {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names
}

// upstream finds a model by name, "" meaning the default.
func (e *Engine) upstream(name string) (Upstream, error) {
	if name == "" {
		name = e.options.Default
	}
	found, ok := e.options.Models[name]
	if !ok {
		return Upstream{}, fmt.Errorf("unknown model %q: %w: known are %s", name, continuo.ErrInvalid, strings.Join(e.Models(), ", "))
	}
	return found, nil
}

// DefaultModel describes the default model.
func (e *Engine) DefaultModel() model.Info { return e.options.Models[e.options.Default].Model.Info() }

// Ready reports whether the store answers.
func (e *Engine) Ready(ctx context.Context) error {
	_, err := e.Log.Conversations(ctx, continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Limit: 1})
	return err
}

// ErrClosing says that the program is ending.
var ErrClosing = durable.ErrClosing
