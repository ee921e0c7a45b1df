package gateway

import (
	"fmt"
	"net/http"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/gemini"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// The methods of Gemini's models.
const (
	geminiGenerate = "generateContent"
	geminiStream   = "streamGenerateContent"
	geminiCount    = "countTokens"
)

// generateContent is POST /v1beta/models/MODEL:METHOD.
type generateContent struct{ name, method string }

// geminiRoutes adds Gemini's calls to a mux.
func (g *Gateway) geminiRoutes(mux *http.ServeMux, scope continuo.Scope) {
	mux.HandleFunc("POST /v1beta/models/{call}", func(w http.ResponseWriter, r *http.Request) {
		name, method, _ := strings.Cut(r.PathValue("call"), ":")
		e := generateContent{name, method}
		switch method {
		case geminiGenerate:
			g.serve(w, r, scope, e)
		case geminiStream:
			g.serveGeminiStream(w, r, scope, e)
		case geminiCount:
			if err := g.countTokens(w, r, e, func(count int) any { return map[string]int{"totalTokens": count} }); err != nil {
				g.writeFailure(w, r, e, err)
			}
		default:
			e.writeError(w, noCall(r))
		}
	})
	mux.HandleFunc("GET /v1beta/models", func(w http.ResponseWriter, r *http.Request) {
		models := []any{}
		for _, name := range g.servedModels(r) {
			models = append(models, geminiModel(name))
		}
		writeJSON(w, http.StatusOK, map[string]any{"models": models})
	})
	mux.HandleFunc("GET /v1beta/models/{name}", func(w http.ResponseWriter, r *http.Request) {
		if _, err := g.engine.Catalog.Served(r.PathValue("name"), model.ProtocolGemini); err != nil {
			generateContent{}.writeError(w, api.ProblemOf(unknownModel(r.PathValue("name"), g.engine.Catalog.Models())))
			return
		}
		writeJSON(w, http.StatusOK, geminiModel(r.PathValue("name")))
	})
	mux.HandleFunc("/v1beta/", func(w http.ResponseWriter, r *http.Request) { generateContent{}.writeError(w, noCall(r)) })
}

// serveGeminiStream answers with a stream of events, or with an array unless the request says alt=sse. The upstream always
// sends events, which can be recorded as they come.
func (g *Gateway) serveGeminiStream(w http.ResponseWriter, r *http.Request, scope continuo.Scope, e generateContent) {
	query := r.URL.Query()
	if query.Get("alt") == "sse" {
		g.serve(w, r, scope, e)
		return
	}
	query.Set("alt", "sse")
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	array := &geminiArray{ResponseWriter: w}
	g.serve(array, r, scope, e)
	array.end()
}

func geminiModel(name string) map[string]any {
	return map[string]any{"name": "models/" + name, "displayName": name, "supportedGenerationMethods": []string{geminiGenerate, geminiStream, geminiCount}}
}

func (generateContent) protocol() string { return model.ProtocolGemini }

func (e generateContent) model([]byte) string { return e.name }

func (e generateContent) path(name string) string { return "v1beta/models/" + name + ":" + e.method }

func (e generateContent) read(body []byte, o request.Options) (*request.Request, error) {
	read, err := request.ReadGemini(body, o)
	if err != nil {
		return nil, err
	}
	read.Model, read.Stream = e.name, e.method == geminiStream
	return read, nil
}

func (generateContent) ends(wire string) bool {
	return strings.Contains(wire, `"finishReason"`) || strings.Contains(wire, `"error"`)
}

// geminiStatuses are Google's names of statuses.
var geminiStatuses = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED", http.StatusNotFound: "NOT_FOUND",
	http.StatusConflict: "ABORTED", http.StatusRequestEntityTooLarge: "INVALID_ARGUMENT", http.StatusUnprocessableEntity: "INVALID_ARGUMENT",
	http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusServiceUnavailable: "UNAVAILABLE", http.StatusGatewayTimeout: "DEADLINE_EXCEEDED",
}

// geminiError is the form of an error of Gemini.
func geminiError(p *api.Problem) map[string]gemini.Error {
	status, known := geminiStatuses[p.Status]
	switch {
	case p.Code == "context_overflow":
		status = "INVALID_ARGUMENT"
	case !known && p.Status < http.StatusInternalServerError:
		status = "FAILED_PRECONDITION"
	case !known:
		status = "INTERNAL"
	}
	return map[string]gemini.Error{"error": {Code: p.Status, Message: p.Message, Status: status}}
}

func (generateContent) writeError(w http.ResponseWriter, p *api.Problem) {
	writeProblem(w, p, geminiError(p))
}

func (generateContent) lastEvent() string { return "" }

func (generateContent) errorEvent(p *api.Problem, _ string) string {
	return fmt.Sprintf("data: %s\r\n\r\n", rawjson.MustMarshal(geminiError(p)))
}

func (generateContent) encoder(asked *askedRequest) encoder { return &geminiEncoder{asked: asked} }

// geminiEncoder writes an answer as the contents of Gemini.
type geminiEncoder struct {
	asked *askedRequest
	id    string
}

func (e *geminiEncoder) streams() bool { return e.asked.Stream }

func (e *geminiEncoder) begin(chat *engine.Chat) string {
	e.id = strings.TrimPrefix(chat.TurnID, "turn_")
	return ""
}

// complete adds what every piece of an answer has.
func (e *geminiEncoder) complete(answer gemini.Response) gemini.Response {
	answer.ModelVersion, answer.ResponseID = e.asked.Model, e.id
	return answer
}

func (e *geminiEncoder) piece(answer gemini.Response) string {
	return fmt.Sprintf("data: %s\r\n\r\n", rawjson.MustMarshal(e.complete(answer)))
}

func (e *geminiEncoder) event(event *turn.Event) string {
	switch event.Kind {
	case turn.TextDelta:
		return e.piece(gemini.Answer([]rawPart{gemini.TextPart(event.Text, false)}, "", nil))
	case turn.ReasoningDelta:
		if event.Text != "" {
			return e.piece(gemini.Answer([]rawPart{gemini.TextPart(event.Text, true)}, "", nil))
		}
	case turn.Answered:
		var calls []rawPart
		for _, part := range gemini.Output(event.Entry, gemini.Options{Provider: providerOf(event.Entry)}) {
			if parsed, err := gemini.ParsePart(part); err == nil && parsed.Call != nil {
				calls = append(calls, part)
			}
		}
		if len(calls) > 0 {
			return e.piece(gemini.Answer(calls, "", nil))
		}
	case turn.Finished:
		return e.piece(gemini.Answer(nil, finishReason(event.Entry), &event.Usage))
	}
	return ""
}

func (e *geminiEncoder) whole(_ *engine.Chat, end *turn.Event) any {
	return e.complete(gemini.Answer(gemini.Output(end.Entry, gemini.Options{Provider: providerOf(end.Entry)}), finishReason(end.Entry), &end.Usage))
}
