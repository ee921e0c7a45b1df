package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// turnChoice names the settings that a turn uses.
type turnChoice struct {
	mode  continuo.Mode
	agent string // "": none
	// model and viewName come from the request; "": the agent, else the defaults, decide.
	model, viewName string
	// usualView is the view where neither names one. Default: continuity in the mode chat, codex for agents.
	usualView string
	// step says that the turn is a step of a run: its brief may name any tool, so that requests offer all of them.
	step bool
	// alone says that a connector gets its prompt without the mode banner, as the agent of a task does.
	alone bool
}

// resolvedTurn is a turnChoice with its names looked up.
type resolvedTurn struct {
	turnChoice
	upstream Upstream
	view     window.View
	role     *crewview.Role // settings of the view for a role of a crew; nil for other turns
	policy   tool.Policy
	tools    tool.Source // nil for none
	system   []string
}

// resolve looks up the names of a choice. In the result, the defaults are filled in.
func (cat *Catalog) resolve(c turnChoice) (resolvedTurn, error) {
	agent, err := cat.agent(c.agent)
	if err != nil {
		return resolvedTurn{}, err
	}
	c.model, c.viewName = cmp.Or(c.model, agent.Model, cat.options.Default), cmp.Or(c.viewName, agent.View, c.usualView, defaultView(c))
	found := resolvedTurn{turnChoice: c, policy: cat.options.Policy, tools: cat.options.Tools}
	if found.upstream, err = cat.upstream(c.model); err != nil {
		return resolvedTurn{}, err
	}
	if found.view, err = cat.view(c.viewName); err != nil {
		return resolvedTurn{}, err
	}
	if found.system, err = cat.options.Prompts.System(c.mode, agent.Persona); err != nil {
		return resolvedTurn{}, err
	}
	if found.upstream.Model.Info().Protocol == model.ProtocolPrompt {
		found.system, found.tools = connectorSystem(c, agent.Persona), nil
	}
	if agent.Tools != nil {
		found.policy = found.policy.Merge(*agent.Tools)
	}
	found.view.Limits = within(found.view.Limits, agent.Budget)
	found.view.FollowWindow = found.view.FollowWindow && agent.Budget.Tokens == 0
	found.upstream.MaxOutputTokens = cmp.Or(agent.MaxOutputTokens, found.upstream.MaxOutputTokens)
	return found, nil
}

// resolveRole looks up what the turns of a role use, without the role's view and system messages.
func (cat *Catalog) resolveRole(modelName, viewName string, tools tool.Policy) (resolvedTurn, error) {
	upstream, err := cat.upstream(modelName)
	if err != nil {
		return resolvedTurn{}, err
	}
	found := resolvedTurn{
		turnChoice: turnChoice{mode: continuo.ModeAgent, model: cmp.Or(modelName, cat.options.Default), viewName: viewName},
		upstream:   upstream, policy: cat.options.Policy.Merge(tools), tools: cat.options.Tools,
	}
	if upstream.Model.Info().Protocol == model.ProtocolPrompt { // its agent has tools of its own
		found.tools = nil
	}
	return found, nil
}

// takesMessages reports whether a role is shown a list of messages, which its model and its fallback must support.
// All other roles are shown one text.
func (cat *Catalog) takesMessages(c resolvedTurn) bool {
	takes := func(m model.Model) bool {
		info := m.Info()
		_, transcript := info.Transcript()
		return !transcript && info.Protocol != model.ProtocolPrompt
	}
	fallback, ok := cat.options.Models[c.upstream.Fallback]
	return takes(c.upstream.Model) && (c.upstream.Fallback == "" || !ok || takes(fallback.Model))
}

// ViewNames lists the names of the views that a context can be built with, without those of roles.
func ViewNames() []string { return append(window.Names(), task.HandoffView) }

// view is the definition of a view by its name.
func (cat *Catalog) view(name string) (window.View, error) {
	switch {
	case name == task.HandoffView:
		return cat.options.Handoff.View().View, nil
	case !slices.Contains(window.Names(), name):
		return window.View{}, fmt.Errorf("unknown view %q: %w: known are %s", name, continuo.ErrInvalid, strings.Join(ViewNames(), ", "))
	}
	return cat.options.Views.View(name)
}

// defaultView is the view of a choice that names none: in the modes of agents it shows more of the log than in chat.
func defaultView(c turnChoice) string {
	if c.mode == continuo.ModeChat && c.agent == "" {
		return window.Continuity
	}
	return window.Codex
}

// connectorSystem is the system messages for a connector, which has rules and tools of its own: the persona, and the
// mode banner, because its prompt may hold messages of other modes.
func connectorSystem(c turnChoice, persona string) (system []string) {
	if persona != "" && c.mode != continuo.ModeChat {
		system = append(system, persona)
	}
	if !c.alone {
		system = append(system, prompt.Banner(c.mode))
	}
	return system
}

// within replaces the limits for which a budget has a number.
func within(limits, budget window.Limits) window.Limits {
	return window.Limits{
		Messages: cmp.Or(budget.Messages, limits.Messages), Chars: cmp.Or(budget.Chars, limits.Chars), Tokens: cmp.Or(budget.Tokens, limits.Tokens),
	}
}

// runner makes the runner of a turn.
func (cat *Catalog) runner(c resolvedTurn) *turn.Runner {
	runner := &turn.Runner{
		Log: cat.log, Model: c.upstream.Model, Tools: c.tools, Policy: c.policy, AllTools: c.step, View: c.view, System: c.system, Limits: cat.options.Limits,
		MaxOutputTokens: c.upstream.MaxOutputTokens, Temperature: c.upstream.Temperature, Speaker: c.upstream.Speaker,
	}
	switch {
	case c.role != nil:
		runner.View, runner.Since = crewview.View{View: c.view, Role: *c.role}, c.role.Since
	case c.viewName == task.HandoffView:
		runner.View = task.View{View: c.view, Handoff: cat.options.Handoff.View().Handoff}
	}
	if fallback, ok := cat.options.Models[c.upstream.Fallback]; ok && c.upstream.Fallback != "" {
		runner.Fallback = &turn.Upstream{Model: fallback.Model, MaxOutputTokens: fallback.MaxOutputTokens, Temperature: fallback.Temperature, Speaker: fallback.Speaker}
	}
	return runner
}

// modeAndAgent is the mode and the agent for a request to a conversation. An agent without a mode implies the mode
// agent; where the request names none, the conversation's own agent answers in the modes agent and run.
func modeAndAgent(conversation continuo.Conversation, mode continuo.Mode, agent string) (continuo.Mode, string) {
	if mode == "" && agent != "" {
		mode = continuo.ModeAgent
	}
	mode = cmp.Or(mode, conversation.ActiveMode)
	if mode != continuo.ModeChat {
		agent = cmp.Or(agent, conversation.ActiveAgent)
	}
	return mode, agent
}
