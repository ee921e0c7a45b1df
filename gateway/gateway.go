package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway/match"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/turn"
)

// Options configures a Gateway. The zero value works.
type Options struct {
	// Logger receives the causes of internal errors, which answers do not have. Default: no logging.
	Logger *slog.Logger
	// Record says which requests are in the log. Default: all.
	Record Record
	// MaxMessageBytes bounds a message over a WebSocket connection. Default 32 MiB.
	MaxMessageBytes int64
	// MCP are the MCP servers that requests can have as tools. Default none.
	MCP MCP
}

// Gateway serves the model APIs over an engine. It is safe for concurrent use.
type Gateway struct {
	engine   *engine.Engine
	forwards *turn.Forwards
	matcher  *match.Matcher
	prefixes continuo.PrefixStore
	options  Options

	queues       queues
	socketLimits socketLimits
	sockets      sync.WaitGroup // the WebSocket connections of clients
}

// New makes a gateway; log is the engine's, and prefixes the log's store.
func New(engine *engine.Engine, log *continuo.Log, prefixes continuo.PrefixStore, options Options) *Gateway {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	limits := usualSocketLimits
	limits.message = cmp.Or(options.MaxMessageBytes, limits.message)
	return &Gateway{
		engine: engine, forwards: turn.NewForwards(log), matcher: match.New(match.Options{Log: log, Prefixes: prefixes}), prefixes: prefixes, options: options,
		socketLimits: limits,
	}
}

// Patterns are the patterns of http.ServeMux below which a gateway answers.
var Patterns = []string{"HEAD /api/hello", "GET /v1/", "POST /v1/", "DELETE /v1/", "GET /v1beta/", "POST /v1beta/"}

// probed are the paths that clients ask for with HEAD before their first request.
var probed = []string{"/api/hello", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/v1/{$}"}

// Handler returns the handler for a caller's scope. The bodies of requests must be bounded by the caller.
func (g *Gateway) Handler(scope continuo.Scope) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, scope, chatCompletions{}) })
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, scope, messages{}) })
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, r *http.Request) {
		if err := g.countTokens(w, r, messages{}, func(count int) any { return map[string]int{"input_tokens": count} }); err != nil {
			g.writeFailure(w, r, messages{}, err)
		}
	})
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		if err := g.embed(w, r, scope); err != nil {
			g.writeFailure(w, r, embeddings{}, err)
		}
	})
	(&completions{g, scope}).routes(mux)
	for _, path := range probed { // whether the server is there
		mux.HandleFunc("HEAD "+path, func(http.ResponseWriter, *http.Request) {})
	}
	g.geminiRoutes(mux, scope)
	stateful := &responsesAPI{g, scope}
	stateful.routes(mux)
	stateful.conversationRoutes(mux)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) { g.listModels(w, r) })
	mux.HandleFunc("GET /v1/models/{id}", func(w http.ResponseWriter, r *http.Request) { g.showModel(w, r) })
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		endpointOf(r).writeError(w, noCall(r))
	})
	return mux
}

// endpoint is one of the APIs: how its requests are read, and how its answers and errors are written.
type endpoint interface {
	// protocol is that of the upstreams to which a request is sent as it came.
	protocol() string
	// model returns the name of the model that a request names, "" for none, and path the path below the base URL to which a
	// request for a model is sent; "" for the upstream's own.
	model(body []byte) string
	path(model string) string
	// read reads a request's body. The error is a *request.Error.
	read(body []byte, o request.Options) (*request.Request, error)
	// encoder writes the answer to a request that is not forwarded.
	encoder(asked *askedRequest) encoder
	// ends reports whether the bytes of a stream end with the last event of an answer.
	ends(wire string) bool
	// writeError answers a request that has no answer yet.
	writeError(w http.ResponseWriter, p *api.Problem)
	// errorEvent is the last event of a stream that failed after the bytes in before.
	errorEvent(p *api.Problem, before string) string
	// lastEvent is what follows the reason for which an answer ended; "" where nothing does.
	lastEvent() string
}

// endpointOf is the endpoint whose form the errors of a request have that no endpoint answers.
func endpointOf(r *http.Request) endpoint {
	if r.Header.Get("Anthropic-Version") != "" {
		return messages{}
	}
	return chatCompletions{}
}

// WriteError answers a request with an error that the gateway does not find itself, such as one of authentication, in the
// form of the API that the request calls.
func WriteError(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1beta/"):
		generateContent{}.writeError(w, p)
	case strings.HasPrefix(r.URL.Path, "/v1/messages"):
		messages{}.writeError(w, p)
	default:
		endpointOf(r).writeError(w, p)
	}
}

// serve answers a request for an answer of a model.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, scope continuo.Scope, e endpoint) {
	if err := g.answer(w, r, scope, e); err != nil {
		g.writeFailure(w, r, e, err)
	}
}

// writeFailure writes the error of a request in the form of an endpoint.
func (g *Gateway) writeFailure(w http.ResponseWriter, r *http.Request, e endpoint, err error) {
	p := api.ProblemOf(err)
	if rule := new(continuo.RuleError); errors.As(err, &rule) || p.Code == "context_overflow" {
		p.Status = http.StatusBadRequest
	}
	if p.Cause != nil {
		g.options.Logger.ErrorContext(r.Context(), "gateway_failed", "path", r.URL.Path, "error", p.Cause.Error())
	}
	e.writeError(w, p)
}

// answer answers a request, or returns an error without having written anything.
func (g *Gateway) answer(w http.ResponseWriter, r *http.Request, scope continuo.Scope, e endpoint) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	repeat, err := repeatOf(r, body)
	if err != nil {
		return err
	}
	return g.answerBody(w, r, scope, e, body, repeat)
}

// answerBody is answer for a body that has been read.
func (g *Gateway) answerBody(w http.ResponseWriter, r *http.Request, scope continuo.Scope, e endpoint, body []byte, repeat engine.Repeat) error {
	asked, err := g.read(e, body)
	if err != nil {
		return err
	}
	if !g.records(asked.Request) {
		return g.pass(w, r, scope, e, asked, body)
	}
	var stored *storing
	if storesCompletion(e, asked) {
		if stored, err = g.newStoring(scope, asked); err != nil {
			return err
		}
	}
	place := queued{queues: &g.queues}
	defer place.end()
	for range maxMatches {
		found, err := g.match(r, scope, asked, repeat)
		if errors.Is(err, continuo.ErrExists) {
			continue // its session was begun by a fork since it was looked for
		}
		if err != nil {
			return err
		}
		y := &relay{endpoint: e, out: w, matched: found, streamed: asked.Stream}
		chat, err := g.begin(r, y, asked, body, repeat)
		if moved := new(continuo.ConflictError); errors.As(err, &moved) || found.conversation.ID == "" && errors.Is(err, continuo.ErrExists) {
			if err := place.enter(r.Context(), found.conversation.ID); err != nil {
				return err
			}
			continue // the conversation has grown, or was created, since the request was matched
		}
		if err != nil {
			return err
		}
		place.end()
		chat.Events = g.titling(r.Context(), scope, found, chat)
		if stored != nil {
			chat.Events = stored.events(r.Context(), chat.TurnID, chat.Events)
		}
		return y.run(chat)
	}
	return fmt.Errorf("begin a turn: %w", continuo.ErrBusy)
}

// maxMatches bounds how often a request is matched again because its conversation has grown meanwhile: those of this
// process wait for each other, so that only those of other replicas make it grow.
const maxMatches = 64

// begin begins the turn of a request, or finds the one that it repeats.
func (g *Gateway) begin(r *http.Request, y *relay, asked *askedRequest, body []byte, repeat engine.Repeat) (*engine.Chat, error) {
	found, info := y.matched, asked.upstream.Model.Info()
	forwards := info.Forwards && info.Protocol == y.endpoint.protocol() && found.view == ""
	if !forwards {
		y.encoder = y.endpoint.encoder(asked)
	}
	if refused := asked.Refusal(); refused != nil && !forwards { // of one that is forwarded, the upstream decides
		return nil, api.Refuse(refused.Param, "%s", refused.Message)
	}
	if !forwards && found.from > 0 {
		return nil, api.Refuse(viewHeader, "only a model that speaks the client's protocol can be shown the client's messages alone: send the whole history, or let a view decide")
	}
	if repeated, err := g.repeated(r.Context(), found); repeated != nil || err != nil {
		return repeated, err
	}
	wanted := engine.ClientRequest{
		Conversation: found.conversation, Title: match.Title(asked.Entries), Entries: found.Entries(), Prefixes: found.prefixes(), Mode: continuo.ModeChat, Model: asked.Model, Upstream: &asked.upstream,
		System: asked.System, Tools: asked.Tools, MaxOutputTokens: asked.MaxOutputTokens, Temperature: asked.Temperature,
		View: found.view, Answered: y.answer.report, Repeat: repeat,
		NoMemory: api.LeavesOut(r.Header.Get("X-Continuo-Memory")),
	}
	if wanted.Prefixes == nil {
		var err error
		if wanted.Prefixes, err = g.keptPrefixes(r.Context(), found.conversation, asked.System); err != nil {
			return nil, err
		}
	}
	if !forwards {
		var err error
		if wanted.Without, err = found.Lacking(r.Context()); err != nil {
			return nil, err
		}
	}
	if forwards {
		wanted.Snapshot = found.snapshot()
		wanted.Answered = nil // the forwarding reports it
		var err error
		if wanted.Forward, err = g.forward(r, y, asked, body); err != nil {
			return nil, err
		}
	} else if err := ask(&wanted, asked.Request, y.endpoint.protocol(), r.Header); err != nil {
		return nil, err
	}
	return g.engine.Turns.Request(r.Context(), wanted)
}

// askedRequest is a request and the model that it asks.
type askedRequest struct {
	*request.Request
	upstream engine.Upstream
}

// read reads a request, and finds its model.
func (g *Gateway) read(e endpoint, body []byte) (*askedRequest, error) {
	name := e.model(body)
	upstream, unknown := g.engine.Catalog.Served(name, e.protocol())
	options := request.Options{}
	if unknown == nil {
		options.Provider = upstream.Model.Info().Provider
	}
	read, err := e.read(body, options)
	if refused := new(request.Error); errors.As(err, &refused) {
		return nil, api.Refuse(refused.Param, "%s", refused.Message)
	}
	switch {
	case err != nil:
	case unknown != nil || name == "":
		err = unknownModel(name, g.engine.Catalog.Models())
	case len(read.Entries) == 0 && len(read.System) == 0:
		err = api.Refuse("messages", "messages is empty: send at least one message")
	case len(read.Entries) == 0: // the system prompt is all that the model is asked
		for _, text := range read.System {
			read.Entries = append(read.Entries, continuo.Entry{Role: continuo.System, Content: continuo.Text(text)})
		}
		read.System = nil
	}
	return &askedRequest{read, upstream}, err
}

// modelInBody is the model that a body names. Of a body that is not valid JSON, which its reader refuses, it may be any.
func modelInBody(body []byte) string {
	name := ""
	if from, to, ok := rawjson.Find(body, "model"); ok && to <= len(body) && json.Valid(body[from:to]) {
		name, _ = rawjson.String(body[from:to])
	}
	return name
}

// unknownModel is the problem of a request for a model that the settings do not have.
func unknownModel(name string, known []string) error {
	if name == "" {
		return api.Refuse("model", "model is missing: there are %s", strings.Join(known, ", "))
	}
	return &api.Problem{
		Status: http.StatusNotFound, Type: api.InvalidRequest, Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("the model %q does not exist; there are: %s; upstreams in the settings serve other names", api.Bounded(name), strings.Join(known, ", ")),
	}
}

// usualView is the view of a conversation whose history the server keeps.
func usualView(asked *askedRequest) string {
	if len(asked.Tools) > 0 {
		return "codex"
	}
	return "continuity"
}
