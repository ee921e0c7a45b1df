package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/anthropic"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/openai"
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
	log := continuo.NewLog(store, continuo.LogOptions{Counter: lazyCounter{}})
	tools, err := allowedTools(settings.Tools.Allow, log)
	if err == nil {
		var all *engine.Engine
		all, err = engine.New(log, engine.Options{
			Models: upstreams(settings, a.env, a.demoPace()), Default: settings.DefaultModel, Views: viewSettings(settings),
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
	return turn.Limits{Rounds: limits.MaxRounds, Turn: limits.Timeout, Idle: limits.IdleTimeout, Tool: limits.ToolTimeout}
}

// allowedTools returns the tools of the setting tools.allow.
func allowedTools(allow []string, log *continuo.Log) (tool.Set, error) {
	known := tool.Set{fs.Read{Log: log}}
	var allowed tool.Set
	for _, name := range allow {
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
func upstreams(settings *config.Config, env []string, pace time.Duration) map[string]engine.Upstream {
	models := map[string]engine.Upstream{config.DemoModel: {Model: demo.New(demo.Options{WordDelay: pace})}}
	for name, m := range settings.Models {
		models[name] = engine.Upstream{
			Model: upstream(m, envValue(env, m.APIKeyEnv), settings.Turn), MaxOutputTokens: m.MaxOutputTokens, Temperature: m.Temperature,
		}
	}
	return models
}

func upstream(m config.ModelConfig, key string, limits config.TurnConfig) model.Model {
	if m.Protocol == config.ProtocolAnthropicMessages {
		return anthropic.New(anthropic.Options{
			BaseURL: m.BaseURL, APIKey: key, Name: m.Model, Provider: m.Provider,
			ContextWindow: m.ContextWindow, Headers: m.Headers, IdleTimeout: limits.IdleTimeout,
		})
	}
	return openai.New(openai.Options{
		BaseURL: m.BaseURL, APIKey: key, Name: m.Model, Provider: m.Provider,
		ContextWindow: m.ContextWindow, Headers: m.Headers, IdleTimeout: limits.IdleTimeout,
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
