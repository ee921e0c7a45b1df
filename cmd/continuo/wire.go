package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/process"
	"github.com/continuo-log/continuo/internal/secret"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model/embedding"
	"github.com/continuo-log/continuo/model/rerank"
	"github.com/continuo-log/continuo/object"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/vector"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/mcptool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// services is an open store and the services on top of it.
type services struct {
	settings  *config.Config
	store     maintenance.Store
	system    string // the store's engine
	objects   *object.Bucket
	log       *continuo.Log
	engine    *engine.Engine
	servers   []*mcptool.Source
	pool      *mcptool.Pool // of the servers that clients of the gateway name
	workflows workflowFolder
	telemetry *telemetry
	metrics   *engine.Metrics
}

// scope is the scope of commands: the project of the settings.
func (w *services) scope() continuo.Scope { return continuo.Scope{ProjectID: w.settings.Project} }

// Close waits for turns and writes in progress, then closes the store. It may be called twice.
func (w *services) Close() {
	if w.engine != nil {
		_ = w.engine.Close(context.Background()) // never fails
	}
	for _, server := range w.servers {
		_ = server.Close() // never fails
	}
	if w.pool != nil {
		_ = w.pool.Close() // never fails
	}
	w.telemetry.Close(context.Background())
	if w.objects != nil {
		_ = w.objects.Close() // everything acknowledged is durable already
	}
	_ = w.store.Close() // likewise
}

// wire loads the settings and builds the services for a command that reads or changes existing data: the store must
// exist. Flags are the command's own.
func (a *app) wire(ctx context.Context, flags ...flag) (*services, error) {
	settings, err := a.loadSettings(flags...)
	if err != nil {
		return nil, err
	}
	return a.wireWith(ctx, settings, buildOptions{existing: true})
}

// buildOptions are the differences between commands.
type buildOptions struct {
	existing bool                 // the store must exist: it is not created
	turns    bool                 // turns will run: tools and traces are needed
	stays    bool                 // the program resumes the work of agents whose program is gone
	logger   *slog.Logger         // default: no logging
	remark   func(text string)    // why a request to a model waits, for the person who does too; default: nobody
	registry *prometheus.Registry // default: no metrics
}

// wireWith builds the services.
func (a *app) wireWith(ctx context.Context, settings *config.Config, wiring buildOptions) (*services, error) {
	open := openStore
	if wiring.existing {
		open = openExisting
	}
	store, system, err := open(ctx, settings.Store)
	if err != nil {
		return nil, err
	}
	a.used = settings
	w := &services{settings: settings, store: store, system: system, telemetry: &telemetry{}}
	if w.objects, err = openObjects(ctx, settings.Objects); err == nil {
		err = a.wireEngine(ctx, w, wiring)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// recoverWork recovers the turns and resumes the runs of programs that are gone; watch retries what fails.
func (w *services) recoverWork(ctx context.Context, logger *slog.Logger) {
	if _, err := w.engine.Turns.Recover(ctx); err != nil {
		logger.Error("recovery_failed", "error", err.Error())
	}
	if _, err := w.engine.Runs.ResumeAbandoned(ctx, 0); err != nil {
		logger.Error("runs_not_resumed", "error", err.Error())
	}
}

// watch runs the background work of a long-running program: it recovers the work of other programs, watches their
// changes, and indexes. It runs more concurrently. stop ends all of it, and returns when it has ended.
func (w *services) watch(ctx context.Context, more ...func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { w.engine.Watch(ctx, w.settings.Turn.Lease/3, w.settings.Turn.KeepEvents) })
	watching.Go(func() { w.log.WatchChanges(ctx) })
	watching.Go(func() { w.engine.Conversations.WatchIndex(ctx, time.Second) })
	watching.Go(func() { w.engine.Conversations.WatchVectors(ctx, vectorPause) })
	for _, work := range more {
		watching.Go(func() { work(ctx) })
	}
	return func() {
		cancel()
		watching.Wait()
	}
}

// vectorPause is how long after it was indexed an entry may have no vector.
const vectorPause = 10 * time.Second

// embedder makes embeddings; nil where the settings name no server for them.
func (a *app) embedder(settings config.EmbeddingsConfig) vector.Embedder {
	if settings.BaseURL == "" {
		return nil
	}
	key := envValue(a.env, settings.APIKeyEnv)
	return embedding.New(embedding.Options{
		BaseURL: settings.BaseURL, Provider: settings.Provider(), Model: settings.Model, Key: key, KeyNote: keyNote(settings.APIKeyEnv, key),
		Dimensions: settings.Dimensions,
	})
}

// reranker reorders entries; nil where the settings name no server for it.
func (a *app) reranker(settings config.RerankerConfig) reorder.Reranker {
	if settings.BaseURL == "" {
		return nil
	}
	key := envValue(a.env, settings.APIKeyEnv)
	return rerank.New(rerank.Options{
		BaseURL: settings.BaseURL, Provider: settings.Provider(), Model: settings.Model, Key: key, KeyNote: keyNote(settings.APIKeyEnv, key),
		Timeout: settings.Timeout,
	})
}

// wireEngine builds the engine on an open store.
func (a *app) wireEngine(ctx context.Context, w *services, wiring buildOptions) error {
	settings, logger := w.settings, wiring.logger
	if wiring.remark == nil {
		wiring.remark = func(string) {}
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	var registry prometheus.Registerer // a nil *Registry is none
	if wiring.registry != nil {
		registry = wiring.registry
	}
	if wiring.turns {
		w.telemetry = newTelemetry(settings.Telemetry, a.env, registry, logger)
	}
	metrics := engine.NewMetrics(registry)
	w.metrics = metrics
	w.log = continuo.NewLog(w.telemetry.store(w.store, w.system), continuo.LogOptions{
		Counter: lazyCounter{}, Objects: w.objects,
		MaxInlineOutput: settings.Objects.InlineOutputBytes, MaxInlinePart: settings.Objects.InlinePartBytes,
		Archives: w.archivist(), CacheBytes: cacheBytes(settings.Store.CacheMiB), PageRead: metrics.PageRead, Charged: metrics.Charged, Prices: settings.PriceList(),
	})
	own, err := builtIn(settings, w.log, w.store, func() *engine.Engine { return w.engine })
	if err != nil {
		return err
	}
	allowed, err := policy(settings, own)
	if err != nil {
		return err
	}
	agents, err := agentsOf(settings, own)
	if err != nil {
		return err
	}
	w.workflows = newWorkflowFolder(settings)
	tools := tool.Sources{own}
	if wiring.turns {
		if w.servers, err = connect(ctx, settings.MCP, logger); err != nil {
			return err
		}
		for _, server := range w.servers {
			tools = append(tools, server)
		}
	}
	archivist := w.archivist()
	models := modelWiring{env: a.env, pace: a.demoPace(settings.Demo), limits: settings.Turn, logger: logger, metrics: metrics, telemetry: w.telemetry, remark: wiring.remark}
	upstreams, err := models.upstreams(settings)
	if err != nil {
		return err
	}
	remembers, err := w.remembers(ctx, wiring.stays)
	if err != nil {
		return err
	}
	w.engine, err = engine.New(w.log, engine.Options{
		Memory: memories.Options{Enabled: remembers, Extractor: settings.Memory.Extractor, DeriveEvery: settings.Memory.DeriveEvery},
		Models: upstreams, Serve: models.serving(settings), Listed: models.listing(settings), Default: settings.DefaultModel, Views: viewSettings(settings),
		Prompts: prompt.Prompts{Dir: settings.Prompts.Dir}, Summarizer: settings.Context.Summarizer, Tools: w.telemetry.tools(tools), Policy: allowed, Limits: turnLimits(settings),
		Handoff: handoffLimits(settings.Handoff), MaxAgents: settings.Handoff.MaxAgents, TakeUp: wiring.stays, AgentTimeout: settings.Handoff.AgentTimeout, Index: w.store, Embedder: a.embedder(settings.Recall.Embeddings), Reranker: a.reranker(settings.Recall.Reranker), RecallThreshold: int(settings.Recall.Threshold * 1_000_000),
		RecallScope: lookup.Scope(settings.Recall.Scope), Archivist: &archivist,
		Agents: agents, Workflows: w.workflows, Crews: newCrewFolder(settings), CrewDefaults: crewDefaults(settings.Crew),
		Turns:   turn.KeeperOptions{Owner: process.Self(), Gone: process.Ended, Lease: settings.Turn.Lease, Show: showEvents(settings.Turn)},
		Budgets: w.budgets(),
		Wait:    settings.Turn.WaitTimeout, MaxTurns: settings.Server.MaxTurns, Logger: logger, Redact: secret.FromEnv(a.env).Text, LogText: settings.Log.MessageText, Tracer: w.telemetry.ids,
	}, metrics)
	return err
}

// remembers reports whether facts are extracted: where the settings leave it open, unless the program is a server that needs
// keys.
func (w *services) remembers(ctx context.Context, isServer bool) (bool, error) {
	if w.settings.Memory.Enabled != config.MemoryAuto {
		return w.settings.Memory.Enabled == config.MemoryOn, nil
	}
	if !isServer {
		return true, nil
	}
	if w.settings.Server.Keys == config.KeysAlways {
		return false, nil
	}
	keys, err := w.store.Keys(ctx, "")
	if err != nil {
		return false, fmt.Errorf("list API keys: %w", err)
	}
	return len(keys) == 0 || w.settings.Server.Keys == config.KeysNever, nil
}

// cacheBytes is a size as LogOptions.CacheBytes has it.
func cacheBytes(mib int64) int64 {
	if mib == 0 {
		return -1
	}
	return mib << 20
}

// showEvents maps the setting of when readers see the events of a turn.
func showEvents(settings config.TurnConfig) turn.Show {
	if settings.ShowEvents == config.ShowImmediate {
		return turn.ShowImmediate
	}
	return turn.ShowDurable
}

// lazyCounter is o200k, unpacked at its first use: most commands count nothing.
type lazyCounter struct{}

func (lazyCounter) Name() string          { return token.O200k().Name() }
func (lazyCounter) Count(text string) int { return token.O200k().Count(text) }

func viewSettings(settings *config.Config) *window.Settings {
	return &window.Settings{
		MaxMessages: settings.Context.MaxMessages, MaxChars: settings.Context.MaxChars, MaxTokens: settings.Context.MaxTokens,
		IncludeToolResults: settings.Context.IncludeToolResults, IncludeCollapsed: settings.Context.IncludeCollapsed,
		LowWater: settings.Context.LowWater, Priced: settings.Context.Moves != config.MovesFixed, Outputs: outputsOf(settings.Context.Outputs),
		ToolOutputChars: settings.Context.ToolOutputChars, PreviewChars: settings.Context.PreviewChars,
		ChatMaxMessages: settings.Chat.MaxHistoryMessages, ChatMaxTokens: settings.Chat.MaxContextTokens,
		ChatFollowsWindow: !settings.Chat.MaxContextTokensGiven, ChatReserve: settings.Chat.ReservedTokens, ReplayHistory: settings.Transcript.HistoryMessages,
		Strategy: strategyOf(settings.Context.Strategy), ChatStrategy: strategyOf(settings.Chat.Strategy), RecallShare: settings.Recall.Share, Profile: settings.Memory.Profile,
	}
}

// outputsOf is the choice of outputs that a setting names.
func outputsOf(name string) window.Outputs {
	if name == string(window.WholeOutputs) {
		return window.WholeOutputs
	}
	return window.ShortOutputs
}

// strategyOf is the strategy that a setting names.
func strategyOf(name string) window.Strategy {
	if name == string(window.Summarize) {
		return window.Summarize
	}
	return window.Truncate
}

func handoffLimits(settings config.HandoffConfig) task.Limits {
	return task.Limits{MaxMessages: settings.MaxMessages, UserMaxChars: settings.UserMaxChars, AssistantMaxChars: settings.AssistantMaxChars}
}

func crewDefaults(settings config.CrewConfig) engine.RoleDefaults {
	return engine.RoleDefaults{Newest: settings.MaxConversationLength, ReminderInterval: settings.SystemReminderInterval, Timeout: settings.AgentTimeout}
}

// redactedAttr is an attribute of a log event without secrets.
func redactedAttr(secrets *secret.Redactor, attr slog.Attr) slog.Attr {
	switch value := attr.Value.Any().(type) {
	case string:
		attr.Value = slog.StringValue(secrets.Text(value))
	case error:
		attr.Value = slog.StringValue(secrets.Text(value.Error()))
	}
	return attr
}

func turnLimits(settings *config.Config) turn.Limits {
	limits := settings.Turn
	return turn.Limits{Rounds: limits.MaxRounds, Turn: limits.Timeout, Tool: limits.ToolTimeout, Ask: settings.Tools.AskTimeout, OutputBytes: settings.Tools.MaxOutputBytes}
}

// newLogger makes the logger of the settings log.level and log.format, on standard error.
func newLogger(settings config.LogConfig, c *console) *slog.Logger {
	options := &slog.HandlerOptions{Level: settings.Level, ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
		return redactedAttr(c.secrets, attr)
	}}
	if settings.Format == "json" {
		return slog.New(traceLog{Handler: slog.NewJSONHandler(c.err, options)})
	}
	return slog.New(traceLog{Handler: slog.NewTextHandler(c.err, options)})
}

// modelText describes a model and its address, or the demo model.
func modelText(settings *config.Config, name string) string {
	text := cmp.Or(name, settings.DefaultModel)
	if m, err := settings.Model(name); err == nil {
		text = m.Name
	}
	if behind := behindModel(settings, name); behind != "" {
		text += " (" + behind + ")"
	}
	return text
}

// behindModel says what a name of the settings stands for; "" for a connector.
func behindModel(settings *config.Config, name string) string {
	m, err := settings.Model(name)
	switch {
	case err != nil:
		return ""
	case m.Protocol == config.ProtocolDemo:
		return "built in, no real model"
	}
	return fmt.Sprintf("%s at %s", cmp.Or(m.Model, m.Name), m.BaseURL)
}
