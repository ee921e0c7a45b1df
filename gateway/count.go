package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// rawPart is a part of a content as it is written.
type rawPart = json.RawMessage

// countTokens answers a request for the size of another one, as an estimate; written is the form of the answer.
func (g *Gateway) countTokens(w http.ResponseWriter, r *http.Request, e endpoint, written func(count int) any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var wrapped struct {
		Request json.RawMessage `json:"generateContentRequest"` // of Gemini
	}
	if json.Unmarshal(body, &wrapped) == nil && len(wrapped.Request) > 0 {
		body = wrapped.Request
	}
	asked, err := g.read(e, body)
	if err != nil {
		return err
	}
	count, err := g.engine.Turns.CountTokens(r.Context(), engine.ClientRequest{
		Entries: asked.Entries, Model: asked.Model, Upstream: &asked.upstream, System: asked.System, Tools: asked.Tools,
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, written(count))
	return nil
}

// noCall is the problem of a request for something that is not there.
func noCall(r *http.Request) *api.Problem {
	return &api.Problem{
		Status: http.StatusNotFound, Type: api.NotFound, Code: "not_found", Message: fmt.Sprintf("there is nothing at %s %s", r.Method, r.URL.Path),
	}
}
