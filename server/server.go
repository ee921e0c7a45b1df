// Package server speaks Continuo's own HTTP API: it decodes a request, calls the engine, and encodes
// what comes back. It decides nothing about conversations.
//
// Every route is in one table (routes.go), every error in one other (problem.go), and both are described
// by openapi.yaml, which tests hold against the routes and against real responses.
//
// A request is its caller's (auth.go): the project of its API key, or Options.Project where no key is
// demanded, rules all that it touches. What another project has is not found, in the same words as what
// nobody has.
//
// Pitfalls: turns that a request began go on when the client goes away, so that engine.Close must be
// called, and waited for, after the HTTP server has stopped. Where no key is demanded, requests are only
// answered under a loopback name or one of Options.AllowedHosts. The caller's http.Server should set ReadHeaderTimeout and must not
// set WriteTimeout, which would cut streams; the streams bound each write themselves.
package server

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
)

// Options configures a server. The zero value works.
type Options struct {
	// Project is whose conversations are served to callers without a key, and whose keys may see /metrics.
	// Default continuo.DefaultProject.
	Project string
	// Keys checks the API keys of callers, KeyPolicy says when they must have one. Default: there are none, and
	// nobody needs one; with KeysAlways, nobody is let in then.
	Keys      *auth.Checker
	KeyPolicy KeyPolicy
	// RequestsPerSecond bounds the requests of each key in this process. Default 0: no bound.
	RequestsPerSecond int
	// MaxBodyBytes bounds a request's body. Default 32 MiB.
	MaxBodyBytes int64
	// MemoryBudget bounds, in bytes, what the bodies of all requests under way take while they are handled, at
	// bodyCost for each byte. Default 0: no bound.
	MemoryBudget int64
	// BodyTimeout is how long a request's body may take; see LimitBodies. Default 30 s.
	BodyTimeout time.Duration
	// KeepAlive is how long a stream may be silent before it carries a comment. Default 15 s.
	KeepAlive time.Duration
	// Logger gets one line for each request, never with message text. Default: none are logged.
	Logger *slog.Logger
	// Tracer makes a span for each request, below the caller's own (traceparent). Default: none are made, and turns are
	// traced below the caller's.
	Tracer trace.Tracer
	// Registry is what /metrics shows; the server adds its own series to it. Default: a new one.
	Registry *prometheus.Registry
	// Version is the program's. Default "dev".
	Version string
	// AllowedHosts are the host names, without port, under which the server may be asked besides localhost
	// and the loopback addresses where no key is demanded. Default none.
	AllowedHosts []string
	// MCP makes what speaks the Model Context Protocol at /mcp, to callers who were let in to a scope.
	// Default: there is nothing at /mcp.
	MCP func(scope continuo.Scope) http.Handler
}

func (o Options) orDefaults() Options {
	if o.Project == "" {
		o.Project = continuo.DefaultProject
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 32 << 20
	}
	if o.BodyTimeout == 0 {
		o.BodyTimeout = 30 * time.Second
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.Tracer{}
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	return o
}

// server is what the handlers share.
type server struct {
	engine  *engine.Engine
	options Options
	metrics *metrics
	guard   *guard
	paces   paces
	budget  budget
	mux     *http.ServeMux
	limited http.Handler // serve, with bodies that have a time limit
	index   []byte
	openAPI func() ([]byte, error)
}

// New makes the handler of an engine's HTTP API. It is safe for concurrent use and has nothing to close.
func New(engine *engine.Engine, options Options) http.Handler {
	options = options.orDefaults()
	s := &server{
		engine: engine, options: options,
		metrics: newMetrics(options.Registry), guard: newGuard(options.AllowedHosts), mux: http.NewServeMux(),
		paces:  paces{perSecond: options.RequestsPerSecond},
		budget: budget{size: options.MemoryBudget},
	}
	s.openAPI = sync.OnceValues(func() ([]byte, error) { return openAPIDocument(options.Version) })
	routes := s.routes()
	s.index = indexPage(options.Version, routes)
	for _, route := range routes {
		s.mux.HandleFunc(route.method+" "+route.path, func(w http.ResponseWriter, r *http.Request) {
			if err := route.serve(w, r); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	s.limited = LimitBodies(http.HandlerFunc(s.serve), options.BodyTimeout)
	return s
}
