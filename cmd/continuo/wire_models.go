package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/breaker"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/limit"
	"github.com/continuo-log/continuo/model/retry"
	"github.com/continuo-log/continuo/model/thinktag"
	"github.com/continuo-log/continuo/model/transcript"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// demoPace is the demo model's delay before each word: in a terminal, its answers come word by word as a model's do.
// The setting demo.pace overrides it.
func (a *app) demoPace(settings config.DemoConfig) time.Duration {
	if settings.Pace > 0 {
		return settings.Pace
	}
	if a.inTerminal && a.outTerminal {
		return 20 * time.Millisecond
	}
	return 0
}

// modelWiring is what all models share.
type modelWiring struct {
	env       []string
	pace      time.Duration // of the demo model
	limits    config.TurnConfig
	logger    *slog.Logger
	metrics   *engine.Metrics
	telemetry *telemetry
	remark    func(text string)
}

// upstreams makes the models and connectors that the settings name, and the demo model.
func (w modelWiring) upstreams(settings *config.Config) (map[string]engine.Upstream, error) {
	models := map[string]engine.Upstream{config.DemoModel: {Model: w.telemetry.model(demo.New(demo.Options{WordDelay: w.pace})), Window: settings.Gateway.Window}}
	for name, m := range settings.Models {
		upstream, err := w.upstream(m)
		if err != nil {
			return nil, err
		}
		models[name] = engine.Upstream{
			Model:           w.telemetry.model(w.guarded(upstream, m)),
			MaxOutputTokens: m.MaxOutputTokens, Temperature: m.Temperature, ReasoningEffort: reasoningEffort(m), Fallback: m.Fallback, Speaker: speaker(m),
			Extras: turn.Extras{Sampling: m.Sampling(), ResponseFormat: m.ResponseFormat, Body: m.ExtraBody},
			Window: cmp.Or(m.Window, settings.Gateway.Window),
		}
	}
	w.addConnectors(settings, models)
	return models, nil
}

// reasoningEffort is the effort that requests name, "" for none.
func reasoningEffort(m config.ModelConfig) string {
	if m.ReasoningEffort == config.ReasoningAuto {
		return ""
	}
	return m.ReasoningEffort
}

// speaker begins with the dialect that the settings name.
func speaker(m config.ModelConfig) *model.Speaker {
	roles := map[string]continuo.Roles{config.StrictOn: continuo.RolesStrict, config.StrictNoSystem: continuo.RolesNoSystem}[m.Strict]
	dialect := model.Dialect{Roles: roles, StructuredWithTools: true}
	switch m.StructuredOutputs {
	case config.StructuredAuto:
		dialect.Structured, dialect.StructuredWithTools = model.StructuredSchema, m.Provider == "openai" || m.Protocol == model.ProtocolAnthropic
	case config.StructuredSchema:
		dialect.Structured = model.StructuredSchema
	case config.StructuredObject:
		dialect.Structured = model.StructuredObject
	}
	return model.NewSpeaker(dialect, model.Fixed{Roles: m.Strict != config.StrictAuto})
}

// guarded wraps a model in its error handling, breaker(retry(transcript(limit(thinktag(model))))):
//   - inline thinking is separated from text first, so that the other layers see it as reasoning;
//   - the limits are inside of the retries, because each attempt has its own time, and one that takes too long is
//     retried;
//   - a model without tool calls is read as a transcript outside of the limits, since that layer holds a call back
//     until it is complete;
//   - the breaker is outside of the retries, so that failures that a retry fixes do not count against the upstream, an
//     open breaker answers at once, without delays, and the fallback takes over.
//
// The fallback is not here but in package turn, since each model gets a request in its own format.
func (w modelWiring) guarded(m model.Model, settings config.ModelConfig) model.Model {
	limits, logger, metrics := w.limits, w.logger, w.metrics
	name, provider := settings.Name, m.Info().Provider
	if settings.InlineThinking != config.InlineThinkingOff {
		m = thinktag.New(m)
	}
	m = limit.New(m, limit.Options{
		FirstToken: firstToken(settings, limits), FirstTokenSetting: firstTokenSetting(settings),
		Idle: limits.IdleTimeout, IdleSetting: "turn.idle_timeout",
	})
	if settings.ToolCalls == config.ToolCallsTranscript {
		m = transcript.New(m)
	}
	m = w.telemetry.attempts(m)
	patience, patienceSetting := limits.WaitTimeout, "turn.wait_timeout"
	if settings.Fallback != "" && limits.RetryMaxWait < patience {
		patience, patienceSetting = limits.RetryMaxWait, "turn.retry_max_wait, since it has a fallback"
	}
	m = retry.New(m, retry.Options{
		Attempts: limits.Retries + 1, MaxWait: limits.RetryMaxWait, MaxTotal: limits.RetryTimeout,
		QueueWait: patience, QueueSetting: patienceSetting,
		OnLimit: func(wait time.Duration, waiting int) {
			logger.Warn("model_limited", "model", name, "wait_ms", wait.Milliseconds(), "waiting", waiting)
			w.remark(name + " limits the rate of requests: this one is sent again in " + term.Duration(wait))
		},
		OnRetry: func(attempt int, err error, wait time.Duration) {
			reason := model.AsError(err).Reason
			metrics.Retried(provider, reason)
			if reason == continuo.ReasonRateLimit {
				return // model_limited reports all that wait
			}
			logger.Warn("model_retried", "model", name, "attempt", attempt, "wait_ms", wait.Milliseconds(), "error", err.Error())
			w.remark("The request is sent again, since it failed: " + strings.TrimRight(model.AsError(err).Message, "."))
		},
	})
	if limits.BreakerFailures == 0 {
		return m
	}
	metrics.BreakerState(name, breakerFigure(breaker.Closed))
	if settings.Fallback != "" {
		patience = 0 // the fallback is used at once
	}
	return breaker.New(m, breaker.Options{
		Name: name, Failures: limits.BreakerFailures, Cooldown: limits.BreakerCooldown, Patience: patience,
		OnChange: func(state breaker.State) {
			metrics.BreakerState(name, breakerFigure(state))
			logger.Warn("breaker_changed", "model", name, "state", state)
		},
	})
}

// firstToken is how long a model may take until its answer begins.
func firstToken(settings config.ModelConfig, limits config.TurnConfig) time.Duration {
	return cmp.Or(settings.FirstTokenTimeout, limits.FirstTokenTimeout)
}

// firstTokenSetting names the settings of firstToken.
func firstTokenSetting(settings config.ModelConfig) string {
	own := "models." + settings.Name + ".first_token_timeout"
	if settings.FirstTokenTimeout > 0 {
		return own
	}
	return "turn.first_token_timeout, or " + own
}

// breakerFigure is a state's value in the series continuo_breaker_state.
func breakerFigure(state breaker.State) int {
	switch state {
	case breaker.HalfOpen:
		return 1
	case breaker.Open:
		return 2
	}
	return 0
}

func (w modelWiring) upstream(m config.ModelConfig) (model.Model, error) {
	protocol, err := wireProtocolOf(m)
	if err != nil {
		return nil, err
	}
	limits := w.limits
	silence := max(limits.IdleTimeout, firstToken(m, limits)) + time.Second // of the connection; guarded distinguishes the two, and first
	key := envValue(w.env, m.APIKeyEnv)
	return protocol.model(model.ClientOptions{
		BaseURL: m.BaseURL, APIKey: key, KeyNote: keyNote(m.APIKeyEnv, key), Name: m.Model, Provider: m.Provider,
		ContextWindow: m.ContextWindow, Headers: m.Headers, IdleTimeout: silence, ConnectTimeout: limits.ConnectTimeout,
	}), nil
}

// keyNote says which key requests have, of the setting api_key_env and the key in that variable.
func keyNote(variable, key string) string {
	switch {
	case variable == "":
		return "no key was sent: api_key_env names no variable"
	case key == "":
		return "no key was sent: " + variable + " is not set"
	}
	return "the key in " + variable + " was sent"
}

// envValue finds a variable in an environment, of duplicates the last one. "" if it is not set.
func envValue(env []string, name string) string {
	for _, variable := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok && name != "" {
			return value
		}
	}
	return ""
}

// serving returns a function that finds the models of clients' requests at the upstreams of the settings, or else at the
// vendors whose keys are in the environment; nil for none. A model is made when it is first asked for.
func (w modelWiring) serving(settings *config.Config) func(name, protocol string) (engine.Upstream, bool) {
	upstreams := servedUpstreams(settings, w.env)
	if len(upstreams) == 0 {
		return nil
	}
	var mu sync.Mutex
	made := map[[2]string]engine.Upstream{}
	return func(name, protocol string) (engine.Upstream, bool) {
		mu.Lock()
		defer mu.Unlock()
		var chosen *config.UpstreamConfig
		for i, candidate := range upstreams {
			if tool.MatchesAny(candidate.Models, name) && (chosen == nil || candidate.Protocol == protocol && chosen.Protocol != protocol) {
				chosen = &upstreams[i]
			}
		}
		if chosen == nil {
			return engine.Upstream{}, false
		}
		key := [2]string{name, chosen.Protocol}
		if found, ok := made[key]; ok {
			return found, true
		}
		m := settings.WithKnown(chosen.Model(name))
		client, err := w.upstream(m)
		if err != nil {
			w.logger.Error("upstream_failed", "upstream", chosen.Name, "error", err.Error())
			return engine.Upstream{}, false
		}
		if len(made) >= maxServedModels {
			clear(made) // clients can ask for any name
		}
		made[key] = engine.Upstream{
			Model: w.telemetry.model(w.guarded(client, m)), MaxOutputTokens: m.MaxOutputTokens, Speaker: speaker(m),
			ForwardCredentials: chosen.Credentials == config.CredentialsForward, Window: cmp.Or(chosen.Window, settings.Gateway.Window),
		}
		return made[key], true
	}
}

// maxServedModels bounds how many models of upstreams are kept.
const maxServedModels = 256

// servedUpstreams are the upstreams of the settings, in the order of their names, or else those of the environment.
func servedUpstreams(settings *config.Config, env []string) []config.UpstreamConfig {
	var upstreams []config.UpstreamConfig
	for _, name := range settings.UpstreamNames() {
		upstreams = append(upstreams, settings.Upstreams[name])
	}
	return append(upstreams, settings.FoundUpstreams(func(variable string) bool { return envValue(env, variable) != "" })...)
}

// gatewayText says which models clients of the gateway can ask for besides those of the settings.
func gatewayText(upstreams []config.UpstreamConfig) string {
	if len(upstreams) == 0 {
		return "/v1, for the models of the settings"
	}
	var served []string
	for _, u := range upstreams {
		key := "the key in " + u.APIKeyEnv
		switch {
		case u.Credentials == config.CredentialsForward:
			key = "the client's credentials"
		case u.APIKeyEnv == "":
			key = "no key"
		case !u.APIKeySet:
			key += " (not set)"
		}
		served = append(served, fmt.Sprintf("%s at %s with %s", strings.Join(u.Models, ", "), u.BaseURL, key))
	}
	return "/v1, for " + strings.Join(slices.Compact(served), "; ") // a vendor may have two protocols
}
