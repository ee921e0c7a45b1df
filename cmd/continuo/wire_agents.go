package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/window"
)

// agentsOf makes the agents of the settings. known are the built-in tools.
func agentsOf(settings *config.Config, known tool.Set) (map[string]engine.Agent, error) {
	made := map[string]engine.Agent{}
	for _, id := range agentIDs(settings) {
		agent := settings.Agents[id]
		tools := tool.Policy{Allow: agent.Tools.Allow, Ask: agent.Tools.Ask, Deny: agent.Tools.Deny, Otherwise: tool.Decision(agent.Tools.Otherwise)}
		if err := checkPolicy(settings, "agents."+id+".tools", tools, known); err != nil {
			return nil, err
		}
		made[id] = engine.Agent{
			ID: id, Name: agent.Name, Persona: strings.TrimSpace(agent.Persona), Model: agent.Model, View: agent.View, Tools: &tools,
			Budget:          window.Limits{Messages: agent.MaxMessages, Chars: agent.MaxChars, Tokens: agent.MaxTokens},
			MaxOutputTokens: agent.MaxOutputTokens,
		}
	}
	return made, nil
}

// agentIDs lists the agents of the settings in order.
func agentIDs(settings *config.Config) []string { return slices.Sorted(maps.Keys(settings.Agents)) }

// checkAgent refuses an unknown agent and suggests the nearest one; "" means no agent.
func checkAgent(settings *config.Config, id string) error {
	known := agentIDs(settings)
	switch {
	case id == "" || slices.Contains(known, id):
		return nil
	case len(known) == 0:
		return usage("there is no agent %q: agents are defined in continuo.yaml under agents, and there are none", term.OneLine(id, 60))
	}
	return usage("there is no agent %q; %s", term.OneLine(id, 60), didYouMean(id, known))
}

// agentText summarizes an agent on one line.
func agentText(settings *config.Config, agent config.AgentConfig) string {
	words := []string{"model " + cmp.Or(agent.Model, settings.DefaultModel), "view " + cmp.Or(agent.View, window.Codex)}
	if agent.Name != agent.ID {
		words = append([]string{term.OneLine(agent.Name, 60)}, words...)
	}
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"may use", agent.Tools.Allow}, {"asks about", agent.Tools.Ask}, {"not", agent.Tools.Deny}} {
		if len(list.patterns) > 0 {
			words = append(words, list.name+" "+strings.Join(list.patterns, ", "))
		}
	}
	if agent.Tools.Otherwise != string(tool.Allow) {
		words = append(words, "other tools: "+agent.Tools.Otherwise)
	}
	return strings.Join(words, " · ")
}

// didYouMean suggests the nearest name, or else lists the known ones.
func didYouMean(name string, known []string) string {
	if near := nearest.Name(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "allowed: " + strings.Join(known, ", ")
}
