package server

import (
	"cmp"
	"net/http"
	"slices"
)

// shownAgent is an agent as clients see it, without its persona.
type shownAgent struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Model and View are the agent's own settings; "" where the request decides.
	Model string `json:"model"`
	View  string `json:"view"`
}

func (s *server) listAgents(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	agents := []shownAgent{}
	for _, agent := range s.engine.Catalog.Agents() {
		agents = append(agents, shownAgent{agent.ID, cmp.Or(agent.Name, agent.ID), agent.Model, agent.View})
	}
	return writeJSON(w, http.StatusOK, list[shownAgent]{Data: agents})
}

// checkAgent refuses the id of an unknown agent; "" means no agent.
func (s *server) checkAgent(param, id string) error {
	var known []string
	for _, agent := range s.engine.Catalog.Agents() {
		known = append(known, agent.ID)
	}
	if id == "" || slices.Contains(known, id) {
		return nil
	}
	return refuse(param, "unknown agent %q%s", bounded(id), suggestion(id, known))
}
