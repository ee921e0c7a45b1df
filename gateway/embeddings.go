package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
)

// embeddings is POST /v1/embeddings. Its requests are those of chat completions as far as this server reads them.
type embeddings struct{ chatCompletions }

func (embeddings) path(string) string { return "/embeddings" }

// embed answers POST /v1/embeddings with the answer of the upstream. No conversation has it.
func (g *Gateway) embed(w http.ResponseWriter, r *http.Request, scope continuo.Scope) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	name := ""
	if json.Valid(body) {
		name = modelInBody(body)
	}
	upstream, err := g.engine.Catalog.Served(name, model.ProtocolOpenAIChat)
	if err != nil || name == "" {
		return unknownModel(name, g.engine.Catalog.Models())
	}
	info := upstream.Model.Info()
	if !info.Forwards || info.Protocol != model.ProtocolOpenAIChat && info.Protocol != model.ProtocolResponses {
		return &api.Problem{
			Status: http.StatusBadRequest, Type: api.InvalidRequest, Code: "embeddings_not_supported", Param: "model",
			Message: fmt.Sprintf("the upstream of the model %q has no embeddings: only upstreams with OpenAI's API have", api.Bounded(name)),
		}
	}
	y := &relay{endpoint: embeddings{}, out: w}
	answer, err := g.engine.Turns.Embed(r.Context(), engine.PassRequest{
		Project: scope.ProjectID, Upstream: upstream, Body: withModel(body, info.Name), Forwarding: y.forwarding(r, info.Name, upstream.ForwardCredentials),
	})
	if failed := new(model.Error); errors.As(err, &failed) {
		return y.fail(modelFailed(failed.TurnError()))
	}
	if err != nil {
		return err
	}
	y.write(string(answer))
	return nil
}
