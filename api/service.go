package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

func (s *Service) serviceOperations() []Operation {
	return []Operation{
		define(Operation{
			ID: "health", Method: "GET", Path: "/healthz", Tag: "service", Summary: "report whether the program runs",
			Public: true, AnyQuery: true, Answers: answers(ok("It does.")),
		}, s.Health),
		define(Operation{
			ID: "ready", Method: "GET", Path: "/readyz", Tag: "service", Summary: "report whether the store answers",
			Public: true, AnyQuery: true, Answers: answers(ok("It does."), failing(http.StatusServiceUnavailable, "It does not (`not_ready`).")),
		}, s.Ready),
	}
}

// Nothing is the input of an operation that has none.
type Nothing struct{}

// Model is a model that can be asked.
type Model struct {
	Name    string `json:"name"`
	Default bool   `json:"default"` // it is asked where a request and its agent name none
}

// ListModels lists the models.
//
// The names that `model` takes, the default first.
func (s *Service) ListModels(context.Context, continuo.Scope, Nothing) (All[Model], error) {
	models := []Model{}
	for i, name := range s.Engine.Catalog.Models() {
		models = append(models, Model{name, i == 0})
	}
	return All[Model]{Data: models}, nil
}

// Agent is an agent of the settings, without its persona.
type Agent struct {
	ID   string `json:"id" pattern:"^[a-z][a-z0-9_-]{0,63}$"`
	Name string `json:"name"` // for people
	// Model and View are the agent's own settings; empty where the request decides.
	Model string `json:"model"`
	View  string `json:"view"`
}

// ListAgents lists the agents.
//
// The ids that `agent_id` and `active_agent` take, in order. `model` and `view` are empty where an agent leaves them to
// the request.
func (s *Service) ListAgents(context.Context, continuo.Scope, Nothing) (All[Agent], error) {
	agents := []Agent{}
	for _, agent := range s.Engine.Catalog.Agents() {
		agents = append(agents, Agent{agent.ID, cmp.Or(agent.Name, agent.ID), agent.Model, agent.View})
	}
	return All[Agent]{Data: agents}, nil
}

// checkAgent refuses the id of an unknown agent; "" means no agent.
func (s *Service) checkAgent(param, id string) error {
	var known []string
	for _, agent := range s.Engine.Catalog.Agents() {
		known = append(known, agent.ID)
	}
	if id == "" || slices.Contains(known, id) {
		return nil
	}
	return Refuse(param, "unknown agent %q%s", Bounded(id), Suggestion(id, known))
}

// Healthy says that the program runs.
type Healthy struct {
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version"`
}

// Health reports that the program runs.
func (s *Service) Health(context.Context, continuo.Scope, Nothing) (Healthy, error) {
	return Healthy{"ok", s.Version}, nil
}

// Readiness says that the store answers.
type Readiness struct {
	Status string `json:"status" enum:"ready"`
}

// readyLimit is how long the store may take to answer a probe.
const readyLimit = 5 * time.Second

// Ready reports whether the store answers.
func (s *Service) Ready(ctx context.Context, _ continuo.Scope, _ Nothing) (Readiness, error) {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := s.Engine.Ready(ctx); err != nil {
		return Readiness{}, &Problem{
			Status: http.StatusServiceUnavailable, Type: ServerError, Code: "not_ready",
			Message: "the store does not answer", Cause: fmt.Errorf("ready: %w", err),
		}
	}
	return Readiness{"ready"}, nil
}
