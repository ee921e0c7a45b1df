package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/window"
)

// Agent is who answers in the modes agent and run: a persona, with what it may use.
type Agent struct {
	ID   string
	Name string // for people; "": the id
	// Persona is a system message of the modes agent and run, never of chat. "": none.
	Persona string
	// Model and View are names; "" leaves them to the request.
	Model, View string
	// Tools narrows the engine's policy. The zero value allows what that allows.
	Tools *tool.Policy
	// Budget replaces the view's limits where its figures are not 0.
	Budget window.Limits
	// MaxOutputTokens replaces the model's own; 0 leaves it.
	MaxOutputTokens int
}

// Agents lists the agents by id.
func (e *Engine) Agents() []Agent {
	var agents []Agent
	for _, id := range slices.Sorted(maps.Keys(e.options.Agents)) {
		agents = append(agents, e.options.Agents[id])
	}
	return agents
}

// ErrUnknownAgent says that the settings have no such agent: perhaps not any more.
var ErrUnknownAgent = errors.New("unknown agent")

// agent finds an agent by id; "" is nobody, the zero Agent.
func (e *Engine) agent(id string) (Agent, error) {
	if id == "" {
		return Agent{}, nil
	}
	found, ok := e.options.Agents[id]
	if !ok {
		known := "there are none; agents stand in continuo.yaml under agents"
		if len(e.options.Agents) > 0 {
			known = "known are " + strings.Join(slices.Sorted(maps.Keys(e.options.Agents)), ", ")
		}
		return Agent{}, fmt.Errorf("%w %q: %w: %s", ErrUnknownAgent, id, continuo.ErrInvalid, known)
	}
	return found, nil
}
