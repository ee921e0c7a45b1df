// Package server implements Continuo's own HTTP API: it decodes a request, calls the engine, and encodes the result. It
// makes no decisions about conversations.
//
// The operations and the errors are tables of package api. openapi.json, which is generated from them, describes them;
// tests compare it with the routes and with real responses.
//
// A request acts with its caller's scope (auth.go): the project of its API key, or Options.Project where no key is
// required, limits all that it touches. A resource of another project is not found, with the same message as a resource
// that does not exist.
//
// Pitfalls: turns that a request began continue when the client disconnects, so that engine.Close must be called, and
// waited for, after the HTTP server has stopped. Where no key is required, requests are only answered under a loopback
// name or one of Options.AllowedHosts. The caller's http.Server should set ReadHeaderTimeout and must not set
// WriteTimeout, which would cut streams; the streams bound each write themselves.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
)

// Options configures a server. The zero value works.
type Options struct {
	// Project is the project of callers without a key, and the one whose keys may read /metrics. Default
	// continuo.DefaultProject.
	Project string
	// Keys checks the API keys of callers, KeyPolicy says when a key is required. Default: there are no keys and none
	// is required; with KeysAlways and no Keys, every caller is refused.
	Keys      *auth.Checker
	KeyPolicy KeyPolicy
	// SessionLife is how long a session that a key opened is valid. Default 12 h.
	SessionLife time.Duration
	// RequestsPerSecond limits the requests of each key in this process. Default 0: unlimited.
	RequestsPerSecond int
	// MaxBodyBytes bounds a request's body. Default 32 MiB.
	MaxBodyBytes int64
	// MemoryBudget bounds, in bytes, the memory for the bodies of all requests in progress, at bodyCost for each byte.
	// Default 0: unlimited.
	MemoryBudget int64
	// BodyTimeout is how long a request's body may take; see LimitBodies. Default 30 s.
	BodyTimeout time.Duration
	// KeepAlive is how long a stream may be idle before it sends a comment. Default 15 s.
	KeepAlive time.Duration
	// Audit records who reads and changes what. AuditReads says that reads are recorded, too; changes and refusals are in any
	// case. Default: nothing is recorded, and GET /api/audit is empty.
	Audit      *audit.Trail
	AuditReads bool
	// TrustedProxies are the addresses whose header X-Forwarded-For is believed. Default none.
	TrustedProxies []netip.Prefix
	// Logger receives one line for each request, never with message text. Default: no logging.
	Logger *slog.Logger
	// Tracer makes a span for each request, as a child of the caller's (traceparent). Default: no spans are made, and
	// the spans of turns are children of the caller's.
	Tracer trace.Tracer
	// Registry is the registry that /metrics shows; the server adds its own series to it. Default: a new one.
	Registry *prometheus.Registry
	// Version is the program's. Default "dev".
	Version string
	// Checks makes the checks of GET /api/health, and the size of the store, nil where it is not known. Their answer is
	// kept for some seconds. Default: there are none.
	Checks func(context.Context) ([]api.HealthCheck, *api.StoreSize)
	// AllowedHosts are the host names, without port, that requests may use besides localhost and the loopback addresses
	// where no key is required. Default none.
	AllowedHosts []string
	// Origins are the origins, such as https://app.example, whose pages may call the API from a browser (CORS). Default
	// none.
	Origins []string
	// MCP returns the handler of the Model Context Protocol at /mcp for an authenticated caller's scope. Default: there
	// is nothing at /mcp.
	MCP func(scope continuo.Scope) http.Handler
	// Gateway returns the handler of the model APIs that clients speak, for an authenticated caller's scope, and
	// GatewayPatterns are the patterns below which it answers. Default: there is none.
	Gateway         func(scope continuo.Scope) http.Handler
	GatewayPatterns []string
	// GatewayError answers a request below /v1/ or /v1beta/ with an error, in the form of the API that it calls. Default: the
	// form of the other errors.
	GatewayError func(w http.ResponseWriter, r *http.Request, p *api.Problem)
	// Inspector answers / for clients that ask for HTML, and its patterns, without a key. Default: there is no page.
	Inspector Inspector
}

// Inspector is a web page of static files.
type Inspector interface {
	http.Handler
	// Patterns are the patterns of http.ServeMux that it answers, besides the root.
	Patterns() []string
}

func (o Options) orDefaults() Options {
	if o.Project == "" {
		o.Project = continuo.DefaultProject
	}
	if o.SessionLife == 0 {
		o.SessionLife = 12 * time.Hour
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

// server is the state that the handlers share.
type server struct {
	api        *api.Service
	engine     *engine.Engine
	operations map[string]api.Operation // by the pattern of their routes
	pages      map[string]bool          // the patterns of the inspector
	options    Options
	metrics    *metrics
	guard      *guard
	cors       *cors
	rateLimits rateLimits
	budget     budget
	mux        *http.ServeMux
	limited    http.Handler // serve, with bodies that have a time limit
	index      []byte
	openAPI    func() ([]byte, error)
}

// New makes the handler of an engine's HTTP API. It is safe for concurrent use and need not be closed.
func New(engine *engine.Engine, options Options) http.Handler {
	options = options.orDefaults()
	s := &server{
		api:    &api.Service{Engine: engine, Version: options.Version, Diagnose: (&health{options: options}).report, Audit: options.Audit},
		engine: engine, options: options,
		metrics: newMetrics(options.Registry), guard: newGuard(options.AllowedHosts), cors: &cors{origins: options.Origins}, mux: http.NewServeMux(),
		rateLimits: rateLimits{perSecond: options.RequestsPerSecond},
		budget:     budget{size: options.MemoryBudget},
	}
	s.cors.trust(s.guard.origins)
	s.openAPI = sync.OnceValues(func() ([]byte, error) { return openAPIDocument(options.Version) })
	routes := s.routes()
	s.index = indexPage(options.Version, routes)
	s.operations = map[string]api.Operation{}
	for _, route := range routes {
		s.operations[route.pattern()] = route.Operation
		s.mux.HandleFunc(route.pattern(), func(w http.ResponseWriter, r *http.Request) {
			if err := route.serve(w, r); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	for _, pattern := range options.GatewayPatterns {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = s.boundedBody(w, r)
			options.Gateway(scopeOf(r)).ServeHTTP(w, r)
		})
	}
	s.addInspector()
	s.limited = LimitBodies(http.HandlerFunc(s.serve), options.BodyTimeout)
	return s
}
