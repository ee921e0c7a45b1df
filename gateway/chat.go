package gateway

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/model"
)

// chatCompletions is POST /v1/chat/completions.
type chatCompletions struct{}

func (chatCompletions) model(body []byte) string { return modelInBody(body) }

func (chatCompletions) path(string) string { return "" }

func (chatCompletions) protocol() string { return model.ProtocolOpenAIChat }

func (chatCompletions) read(body []byte, o request.Options) (*request.Request, error) {
	return request.ReadChat(body, o)
}

func (chatCompletions) ends(wire string) bool {
	return strings.HasSuffix(strings.TrimRight(wire, "\r\n"), "data: "+openaichat.Done) || strings.Contains(wire, `data: {"error"`)
}

func (chatCompletions) writeError(w http.ResponseWriter, p *api.Problem) {
	writeProblem(w, p, openAIError(p))
}

func (chatCompletions) errorEvent(p *api.Problem, _ string) string {
	return fmt.Sprintf("data: %s\n\n", rawjson.MustMarshal(openAIError(p)))
}

func (chatCompletions) lastEvent() string { return "data: " + openaichat.Done + "\n\n" }

// openAIErrorBody is the form of an error of OpenAI.
type openAIErrorBody struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	} `json:"error"`
}

func openAIError(p *api.Problem) openAIErrorBody {
	var body openAIErrorBody
	body.Error.Message, body.Error.Type, body.Error.Code = p.Message, string(p.Type), p.Code
	switch {
	case p.Code == "context_overflow":
		body.Error.Code, body.Error.Type = "context_length_exceeded", string(api.InvalidRequest)
	case p.Type == api.RateLimit && p.RetryAfter == api.RetryNever:
		body.Error.Code, body.Error.Type = "insufficient_quota", "insufficient_quota"
	case p.Type == api.RateLimit:
		body.Error.Code = "rate_limit_exceeded"
		if p.Code == "budget_exceeded" {
			body.Error.Code = "insufficient_quota"
		}
	case p.Type == api.UpstreamError:
		body.Error.Code, body.Error.Type = "server_error", string(api.ServerError)
	}
	if p.Param != "" {
		body.Error.Param = &p.Param
	}
	return body
}

// writeProblem writes an error in the form of an endpoint.
func writeProblem(w http.ResponseWriter, p *api.Problem, body any) {
	if wait := p.Wait(); wait > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(wait))
	}
	if p.RetryAfter == api.RetryNever {
		w.Header().Set(shouldRetryHeader, "false")
	}
	writeJSON(w, p.Status, body)
}

// shouldRetryHeader says whether to send the same request again, to clients that decide by the status otherwise.
const shouldRetryHeader = "X-Should-Retry"

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(bytes.TrimSpace(rawjson.MustMarshal(body)), '\n'))
}

// openAIModel is a model in OpenAI's list.
type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // "model"
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// anthropicModel is a model in Anthropic's list.
type anthropicModel struct {
	Type        string `json:"type"` // "model"
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

// modelEntry is a model in the list of the client's protocol.
func (g *Gateway) modelEntry(r *http.Request, name string) any {
	upstream, err := g.engine.Catalog.Served(name, endpointOf(r).protocol())
	if err != nil {
		return nil
	}
	if _, isAnthropic := endpointOf(r).(messages); isAnthropic {
		return anthropicModel{"model", name, name, time.Unix(0, 0).UTC().Format(time.RFC3339)}
	}
	return openAIModel{name, "model", 0, upstream.Model.Info().Provider}
}

// listModels answers GET /v1/models in the form of OpenAI or Anthropic.
func (g *Gateway) listModels(w http.ResponseWriter, r *http.Request) {
	names := g.servedModels(r)
	data := []any{}
	for _, name := range names {
		data = append(data, g.modelEntry(r, name))
	}
	if _, isAnthropic := endpointOf(r).(messages); isAnthropic {
		writeJSON(w, http.StatusOK, map[string]any{"data": data, "has_more": false, "first_id": names[0], "last_id": names[len(names)-1]})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// servedModels are the names of the models that a client can ask for.
func (g *Gateway) servedModels(r *http.Request) []string {
	credentials := http.Header{}
	addCredentials(credentials, r.Header)
	var names []string
	for _, name := range g.engine.Catalog.ServedModels(r.Context(), credentials) {
		if _, err := g.engine.Catalog.Served(name, endpointOf(r).protocol()); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// showModel answers GET /v1/models/{id}.
func (g *Gateway) showModel(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("id")
	if found := g.modelEntry(r, name); found != nil && name != "" {
		writeJSON(w, http.StatusOK, found)
		return
	}
	endpointOf(r).writeError(w, api.ProblemOf(unknownModel(name, g.engine.Catalog.Models())))
}
