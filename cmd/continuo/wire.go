package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/anthropic"
	"github.com/continuo-log/continuo/model/breaker"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/limit"
	"github.com/continuo-log/continuo/model/openai"
	"github.com/continuo-log/continuo/model/retry"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/fs"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// wired is an open store and what stands on it.
type wired struct {
	settings *config.Config
	store    *sqlite.Store
	log      *continuo.Log
	engine   *engine.Engine
}

// Close waits for turns and writes under way, then closes the store. It may be called twice.
func (w *wired) Close() {
	_ = w.engine.Close(context.Background()) // never fails
	_ = w.store.Close()                      // everything acknowledged is durable already
}

// wire loads the settings and puts everything together, without logging; flags are the command's own.
func (a *app) wire(ctx context.Context, flags ...flag) (*wired, error) {
	settings, err := a.loadSettings(flags...)
	if err != nil {
		return nil, err
	}
	return a.wireWith(ctx, settings, nil, nil)
}

// wireWith puts everything together. Logger and metrics may be nil.
func (a *app) wireWith(ctx context.Context, settings *config.Config, logger *slog.Logger, metrics *engine.Metrics) (*wired, error) {
	store, err := sqlite.Open(ctx, settings.Store.Path, sqlite.Options{})
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if metrics == nil {
		metrics = engine.NewMetrics(nil)
	}
	log := continuo.NewLog(store, continuo.LogOptions{Counter: lazyCounter{}})
	tools, err := allowedTools(settings.Tools, log)
	if err == nil {
		var all *engine.Engine
		all, err = engine.New(log, engine.Options{
			Models: upstreams(settings, a.env, a.demoPace(), logger, metrics), Default: settings.DefaultModel, Views: viewSettings(settings),
			Prompts: prompt.Prompts{Dir: settings.Prompts.Dir}, Tools: tools, Limits: turnLimits(settings.Turn),
			Wait: settings.Turn.WaitTimeout, Logger: logger, LogText: settings.Log.MessageText,
		}, metrics)
		if err == nil {
			return &wired{settings: settings, store: store, log: log, engine: all}, nil
		}
	}
	_ = store.Close()
	return nil, err
}

// lazyCounter is o200k, unpacked when it is first needed: most commands count nothing.
type lazyCounter struct{}

func (lazyCounter) Name() string          { return token.O200k().Name() }
func (lazyCounter) Count(text string) int { return token.O200k().Count(text) }

func viewSettings(settings *config.Config) *window.Settings {
	return &window.Settings{
		MaxMessages: settings.Context.MaxMessages, MaxChars: settings.Context.MaxChars, MaxTokens: settings.Context.MaxTokens,
		IncludeToolResults: settings.Context.IncludeToolResults, IncludeCollapsed: settings.Context.IncludeCollapsed,
		LowWater:        settings.Context.LowWater,
		ToolOutputChars: settings.Context.ToolOutputChars, PreviewChars: settings.Context.PreviewChars,
		ChatMaxMessages: settings.Chat.MaxHistoryMessages, ChatMaxTokens: settings.Chat.MaxContextTokens,
		ChatReserve: settings.Chat.ReservedTokens, ReplayHistory: settings.Transcript.HistoryMessages,
	}
}

func turnLimits(limits config.TurnConfig) turn.Limits {
	return turn.Limits{Rounds: limits.MaxRounds, Turn: limits.Timeout, Tool: limits.ToolTimeout}
}

// allowedTools returns the tools of the setting tools.allow, over the folder of tools.project_dir.
func allowedTools(settings config.ToolsConfig, log *continuo.Log) (tool.Set, error) {
	if dir := settings.ProjectDir; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, usage("tools.project_dir: there is no folder %s; make it, or correct the setting", dir)
		}
	}
	roots := fs.Roots{Log: log, ProjectDir: settings.ProjectDir}
	known := tool.Set{fs.Read{Roots: roots}, fs.List{Roots: roots}, fs.Search{Roots: roots}}
	var allowed tool.Set
	for _, name := range settings.Allow {
		found, ok := known.Find(name)
		if !ok {
			return nil, usage("tools.allow: there is no tool %q; known are %s", name, strings.Join(toolNames(known), ", "))
		}
		allowed = append(allowed, found)
	}
	return allowed, nil
}

func toolNames(tools tool.Set) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Spec().Name
	}
	return names
}

// demoPace is how long the demo model waits before each word: where a person looks on, its answers come
// word by word as a model's do.
func (a *app) demoPace() time.Duration {
	if a.inTerminal && a.outTerminal {
		return 20 * time.Millisecond
	}
	return 0
}

// upstreams makes the models that the settings name, and the demo model.
func upstreams(settings *config.Config, env []string, pace time.Duration, logger *slog.Logger, metrics *engine.Metrics) map[string]engine.Upstream {
	models := map[string]engine.Upstream{config.DemoModel: {Model: demo.New(demo.Options{WordDelay: pace})}}
	for name, m := range settings.Models {
		models[name] = engine.Upstream{
			Model:           guarded(upstream(m, envValue(env, m.APIKeyEnv), settings.Turn), name, settings.Turn, logger, metrics),
			MaxOutputTokens: m.MaxOutputTokens, Temperature: m.Temperature, Fallback: m.Fallback,
		}
	}
	return models
}

// guarded puts what deals with trouble around a model, breaker(retry(limit(model))):
//   - the limits are inside, because each attempt has its own time, and one that takes too long is retried;
//   - the breaker is outside of the retries, so that what they mend does not count against the upstream, an
//     open breaker answers at once, without waits, and the fallback takes over.
//
// The fallback is not here but in package turn, since each model gets a request of its own making.
func guarded(m model.Model, name string, limits config.TurnConfig, logger *slog.Logger, metrics *engine.Metrics) model.Model {
	provider := m.Info().Provider
	m = limit.New(m, limit.Options{FirstToken: limits.FirstTokenTimeout, Idle: limits.IdleTimeout})
	m = retry.New(m, retry.Options{
		Attempts: limits.Retries + 1, MaxWait: limits.RetryMaxWait, MaxTotal: limits.RetryTimeout,
		OnRetry: func(attempt int, err error, wait time.Duration) {
			metrics.Retried(provider, model.AsError(err).Reason)
			logger.Warn("model_retried", "model", name, "attempt", attempt, "wait_ms", wait.Milliseconds(), "error", err.Error())
		},
	})
	if limits.BreakerFailures == 0 {
		return m
	}
	metrics.BreakerState(name, breakerFigure(breaker.Closed))
	return breaker.New(m, breaker.Options{
		Name: name, Failures: limits.BreakerFailures, Cooldown: limits.BreakerCooldown,
		OnChange: func(state breaker.State) {
			metrics.BreakerState(name, breakerFigure(state))
			logger.Warn("breaker_changed", "model", name, "state", state)
		},
	})
}

// breakerFigure is a state in the series continuo_breaker_state.
func breakerFigure(state breaker.State) int {
	switch state {
	case breaker.HalfOpen:
		return 1
	case breaker.Open:
		return 2
	}
	return 0
}

func upstream(m config.ModelConfig, key string, limits config.TurnConfig) model.Model {
	silence := max(limits.IdleTimeout, limits.FirstTokenTimeout) // of the connection; guarded tells the two apart
	if m.Protocol == config.ProtocolAnthropicMessages {
		return anthropic.New(anthropic.Options{
			BaseURL: m.BaseURL, APIKey: key, Name: m.Model, Provider: m.Provider,
			ContextWindow: m.ContextWindow, Headers: m.Headers, IdleTimeout: silence, ConnectTimeout: limits.ConnectTimeout,
		})
	}
	return openai.New(openai.Options{
		BaseURL: m.BaseURL, APIKey: key, Name: m.Model, Provider: m.Provider,
		ContextWindow: m.ContextWindow, Headers: m.Headers, IdleTimeout: silence, ConnectTimeout: limits.ConnectTimeout,
	})
}

// envValue finds a variable in an environment; the last one counts. "" when it is not set.
func envValue(env []string, name string) string {
	for _, variable := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok && name != "" {
			return value
		}
	}
	return ""
}

// newLogger makes the logger of the settings log.level and log.format, on standard error.
func newLogger(settings config.LogConfig, c *console) *slog.Logger {
	options := &slog.HandlerOptions{Level: settings.Level}
	if settings.Format == "json" {
		return slog.New(slog.NewJSONHandler(c.err, options))
	}
	return slog.New(slog.NewTextHandler(c.err, options))
}

// modelWords says who answers: a model and where it is, or that it is the demo.
func modelWords(settings *config.Config, name string) string {
	m, err := settings.Model(name)
	switch {
	case err != nil:
		return name
	case m.Protocol == config.ProtocolDemo:
		return "demo (built in, no real model)"
	}
	return fmt.Sprintf("%s (%s at %s)", m.Name, cmp.Or(m.Model, m.Name), m.BaseURL)
}
