package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// TurnSpec names the settings that a turn uses.
type TurnSpec struct {
	Mode  continuo.Mode
	Agent string // "": none
	// model and viewName come from the request; "": the agent, else the defaults, decide.
	Model, ViewName string
	// usualView is the view where neither names one. Default: continuity in the mode chat, codex for agents.
	UsualView string
	// step says that the turn is a step of a run: its brief may name any tool, so that requests offer all of them.
	Step bool
	// alone says that a connector gets its prompt without the mode banner, as the agent of a task does.
	Alone bool
	// NoMemory hides what is known of the user.
	NoMemory bool
}

// ResolvedTurn is a TurnSpec with its names looked up.
type ResolvedTurn struct {
	TurnSpec
	Upstream Upstream
	View     window.View
	Role     *crewview.Role // settings of the view for a role of a crew; nil for other turns
	Policy   tool.Policy
	tools    tool.Source // nil for none
	System   []string
}

// Resolve looks up the names of a choice. In the result, the defaults are filled in.
func (cat *Catalog) Resolve(c TurnSpec) (ResolvedTurn, error) {
	agent, err := cat.Agent(c.Agent)
	if err != nil {
		return ResolvedTurn{}, err
	}
	c.Model, c.ViewName = cmp.Or(c.Model, agent.Model, cat.Options.Default), cmp.Or(c.ViewName, agent.View, c.UsualView, defaultView(c))
	found := ResolvedTurn{TurnSpec: c, Policy: cat.Options.Policy, tools: cat.Options.Tools}
	if found.Upstream, err = cat.Upstream(c.Model); err != nil {
		return ResolvedTurn{}, err
	}
	if found.View, err = cat.View(c.ViewName); err != nil {
		return ResolvedTurn{}, err
	}
	if c.NoMemory && found.View.Profile == window.ProfileShown {
		found.View.Profile = window.ProfileHidden
	}
	if found.System, err = cat.Options.Prompts.System(c.Mode, agent.Persona); err != nil {
		return ResolvedTurn{}, err
	}
	if found.Upstream.Model.Info().TakesPrompt() {
		found.System, found.tools = connectorSystem(c, agent.Persona), nil
	}
	if agent.Tools != nil {
		found.Policy = found.Policy.Merge(*agent.Tools)
	}
	found.View.Limits = within(found.View.Limits, agent.Budget)
	found.View.FollowWindow = found.View.FollowWindow && agent.Budget.Tokens == 0
	found.Upstream.MaxOutputTokens = cmp.Or(agent.MaxOutputTokens, found.Upstream.MaxOutputTokens)
	return found, nil
}

// ResolveRole looks up what the turns of a role use, without the role's view and system messages.
func (cat *Catalog) ResolveRole(modelName, viewName string, tools tool.Policy) (ResolvedTurn, error) {
	upstream, err := cat.Upstream(modelName)
	if err != nil {
		return ResolvedTurn{}, err
	}
	found := ResolvedTurn{
		TurnSpec: TurnSpec{Mode: continuo.ModeAgent, Model: cmp.Or(modelName, cat.Options.Default), ViewName: viewName},
		Upstream: upstream, Policy: cat.Options.Policy.Merge(tools), tools: cat.Options.Tools,
	}
	if upstream.Model.Info().TakesPrompt() { // its agent has tools of its own
		found.tools = nil
	}
	return found, nil
}

// TakesMessages reports whether a role is shown a list of messages, which its model and its fallback must support.
// All other roles are shown one text.
func (cat *Catalog) TakesMessages(c ResolvedTurn) bool {
	fallback, ok := cat.Options.Models[c.Upstream.Fallback]
	return c.Upstream.Model.Info().TakesMessages() && (c.Upstream.Fallback == "" || !ok || fallback.Model.Info().TakesMessages())
}

// RecallView shows the entries that a query needs most, and nothing else.
const RecallView = "recall"

// ViewNames lists the names of the views that a context can be built with, without those of roles.
func ViewNames() []string { return append(window.Names(), task.HandoffView, RecallView) }

// View is the definition of a view by its name.
func (cat *Catalog) View(name string) (window.View, error) {
	switch {
	case name == task.HandoffView:
		return cat.Options.Handoff.View().View, nil
	case name == RecallView:
		settings := cat.Options.Views
		return window.View{Name: name, LowWater: 1, Limits: window.Limits{Tokens: settings.ChatMaxTokens}}, nil
	case !slices.Contains(window.Names(), name):
		return window.View{}, fmt.Errorf("unknown view %q: %w; allowed: %s", name, continuo.ErrInvalid, strings.Join(ViewNames(), ", "))
	}
	return cat.Options.Views.View(name)
}

// defaultView is the view of a choice that names none: in the modes of agents it shows more of the log than in chat.
func defaultView(c TurnSpec) string {
	if c.Mode == continuo.ModeChat && c.Agent == "" {
		return window.Continuity
	}
	return window.Codex
}

// connectorSystem is the system messages for a connector, which has rules and tools of its own: the persona, and the
// mode banner, because its prompt may hold messages of other modes.
func connectorSystem(c TurnSpec, persona string) (system []string) {
	if persona != "" && c.Mode != continuo.ModeChat {
		system = append(system, persona)
	}
	if !c.Alone {
		system = append(system, prompt.Banner(c.Mode))
	}
	return system
}

// within replaces the limits for which a budget has a number.
func within(limits, budget window.Limits) window.Limits {
	return window.Limits{
		Messages: cmp.Or(budget.Messages, limits.Messages), Chars: cmp.Or(budget.Chars, limits.Chars), Tokens: cmp.Or(budget.Tokens, limits.Tokens),
	}
}

// Runner makes the runner of a turn.
func (cat *Catalog) Runner(c ResolvedTurn) *turn.Runner {
	runner := &turn.Runner{
		Log: cat.log, Model: c.Upstream.Model, Tools: c.tools, Policy: c.Policy, AllTools: c.Step, View: c.View, System: c.System, Limits: cat.Options.Limits,
		MaxOutputTokens: c.Upstream.MaxOutputTokens, Temperature: c.Upstream.Temperature,
		ReasoningEffort: c.Upstream.ReasoningEffort, Extras: c.Upstream.Extras, Speaker: c.Upstream.Speaker,
	}
	runner.Recaller, runner.Profiler, runner.NoMemory = cat.Options.Recaller, cat.Options.Profiler, c.NoMemory
	switch {
	case c.Role != nil:
		runner.View, runner.Since = crewview.View{View: c.View, Role: *c.Role}, c.Role.Since
	case c.ViewName == task.HandoffView:
		runner.View = task.View{View: c.View, Handoff: cat.Options.Handoff.View().Handoff}
	}
	if fallback, ok := cat.Options.Models[c.Upstream.Fallback]; ok && c.Upstream.Fallback != "" {
		runner.Fallback = &turn.Upstream{
			Model: fallback.Model, MaxOutputTokens: fallback.MaxOutputTokens, Temperature: fallback.Temperature,
			ReasoningEffort: fallback.ReasoningEffort, Extras: fallback.Extras, Speaker: fallback.Speaker,
		}
	}
	return runner
}

// ModeAndAgent is the mode and the agent for a request to a conversation. An agent without a mode implies the mode
// agent; where the request names none, the conversation's own agent answers in the modes agent and run.
func ModeAndAgent(conversation continuo.Conversation, mode continuo.Mode, agent string) (continuo.Mode, string) {
	if mode == "" && agent != "" {
		mode = continuo.ModeAgent
	}
	mode = cmp.Or(mode, conversation.ActiveMode)
	if mode != continuo.ModeChat {
		agent = cmp.Or(agent, conversation.ActiveAgent)
	}
	return mode, agent
}
