package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

func (s *Service) serviceOperations() []Operation {
	text, message := Media{Type: "text/plain"}, Media{Type: JSON, Schema: reflect.TypeFor[json.RawMessage]()}
	return []Operation{
		adapted(Operation{
			ID: "speakMCP", Method: "POST", Path: "/mcp", Tag: "service", Summary: "speak the Model Context Protocol",
			Description: "One message of the Model Context Protocol (streamable HTTP, without sessions, protocol versions up to " +
				"2026-07-28), with the same keys as every other call. docs/mcp-server.md of the source describes the tools, " +
				"resources and prompts, and the methods of the protocol list them. Answers and errors have the form of the protocol.",
			Body: []Media{message},
			Answers: answers(
				ok("The answer, as the only event of a stream or after notifications.").as(Media{Type: "text/event-stream"}, message),
				accepted("The message was a notification."),
				Answer{Description: "An error of this API, or of JSON-RPC."}.as(message, text),
			),
		}),
		define(Operation{
			ID: "health", Method: "GET", Path: "/healthz", Tag: "service", Summary: "report whether the program runs",
			Public: true, Probe: true, Answers: answers(ok("It does.")),
		}, s.Health),
		define(Operation{
			ID: "ready", Method: "GET", Path: "/readyz", Tag: "service", Summary: "report whether the store answers",
			Public: true, Probe: true, Answers: answers(ok("It does."), failing(http.StatusServiceUnavailable, "It does not (`not_ready`).")),
		}, s.Ready),
		define(Operation{
			ID: "reportHealth", Method: "GET", Path: "/api/health", Tag: "service", Summary: "report what doctor checks, and how the process does",
			Figures: true,
			Answers: answers(
				ok("The report; `ok` is false when a check failed."),
				failing(http.StatusForbidden, "The key is another project's or a user's (`not_your_figures`), or as for any other call."),
			),
		}, s.ReportHealth),
		adapted(Operation{
			ID: "metrics", Method: "GET", Path: "/metrics", Tag: "service", Summary: "figures for Prometheus", Figures: true,
			Description: "The figures are of all projects: only a key of the server's own project (its setting `project`) may read " +
				"them.",
			Answers: answers(
				ok("The text format of Prometheus, or the one that the header `Accept` names.").as(text),
				failing(http.StatusForbidden, "The key is another project's (`not_your_figures`), or as for any other call."),
			),
		}),
		adapted(Operation{
			ID: "openapi", Method: "GET", Path: "/openapi.json", Tag: "service", Summary: "this API as an OpenAPI document", Public: true,
			Answers: answers(ok("This document.").as(Media{Type: JSON, Schema: reflect.TypeFor[map[string]any]()})),
		}),
		adapted(Operation{
			ID: "index", Method: "GET", Path: "/{$}", Tag: "service", Summary: "this page", Public: true,
			Answers: answers(ok("A text that lists the calls; for clients whose header `Accept` names `text/html`, the inspector.").as(text, Media{Type: "text/html"})),
		}),
	}
}

// adapted makes a row of an operation that the adapter carries out alone: it reads no input, and any query is ignored.
func adapted(row Operation) Operation {
	row.AnyQuery = true
	return define(row, (func(context.Context, continuo.Scope, Nothing) (None, error))(nil))
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
	return Refuse(param, "unknown agent %q%s", Bounded(id), suggestion(id, known))
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
