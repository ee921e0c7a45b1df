// Package mcpserver implements the Model Context Protocol: tools, resources and prompts over an engine, on a pair of
// pipes (Run) or over HTTP (Handler). It makes no decisions about conversations and tasks.
//
// Each project has a server of its own, so that no state that the SDK keeps for one (subscriptions, lists) can reach
// another. Over HTTP no session is kept: any replica answers any request, and a call's arguments contain all that it
// needs. A tool is a row of a table: an input type, an output type and a function, mostly those of an operation of package
// api. Its schemas (schemas.json) are generated from the types; its description is NAME.md. Package api decodes and checks
// the arguments, not the SDK, so that errors in them are returned as data that a program can read.
//
// Pitfalls: the SDK runs each request in a goroutine of its own, where a panic would end the program: the middleware
// guarded wraps all of them. Results may be cached publicly by default: private marks everything that is read from the
// log as private. A client that disconnects ends its waiting calls only under the protocol 2026-07-28 and on pipes;
// with older protocols over HTTP, a tool that waits does so to its end.
package mcpserver

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/engine"
)

// Options configures a Server. The zero value works.
type Options struct {
	// Version is the program's. Default "dev".
	Version string
	// MaxBodyBytes bounds a message. Default 32 MiB.
	MaxBodyBytes int64
	// Poll is how often a waiting tool, or a subscription, polls the log. Default 250 ms.
	Poll time.Duration
	// Audit records who reads and changes what; AuditReads says that reads are recorded, too. Caller is who asks where the
	// context of a request has no audit.Caller. Default: nothing is recorded.
	Audit      *audit.Trail
	AuditReads bool
	Caller     audit.Caller
	// Logger receives internal errors, never with message text. Default: no logging.
	Logger *slog.Logger
}

// Server answers for every project of an engine. It is safe for concurrent use.
type Server struct {
	engine  *engine.Engine
	options Options
	tools   []offered

	mu    sync.Mutex
	faces map[continuo.Scope]*projectServer // of projects, and of maxUsers users
}

// New makes a server over an engine.
func New(engine *engine.Engine, options Options) *Server {
	if options.Version == "" {
		options.Version = "dev"
	}
	if options.MaxBodyBytes == 0 {
		options.MaxBodyBytes = 32 << 20
	}
	if options.Poll == 0 {
		options.Poll = 250 * time.Millisecond
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	tools, err := offeredTools()
	if err != nil {
		panic(err) // the embedded schemas are damaged
	}
	return &Server{engine: engine, options: options, tools: tools, faces: map[continuo.Scope]*projectServer{}}
}

// Handler answers MCP over HTTP for callers that are authenticated for a scope. It checks neither keys nor origins nor
// host names: the middleware before it does. Streams end when the engine drains.
func (s *Server) Handler(scope continuo.Scope) http.Handler { return s.face(scope).handler }

// Run serves a scope on a transport until the client closes it or ctx is done.
func (s *Server) Run(ctx context.Context, scope continuo.Scope, transport mcp.Transport) error {
	defer s.Close()
	return s.face(scope).mcp.Run(ctx, transport)
}

// SDK is the SDK's server of a scope, for callers that serve it over another transport or add to it. If that transport
// keeps sessions, the caller closes the Server at the end.
func (s *Server) SDK(scope continuo.Scope) *mcp.Server { return s.face(scope).mcp }

// Close ends the subscriptions of sessions. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, face := range s.faces {
		face.watches.close()
	}
}

// maxUsers bounds the users whose servers are kept; the server of any further user is made for each request.
const maxUsers = 1000

func (s *Server) face(scope continuo.Scope) *projectServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faces[scope] == nil {
		if scope.UserID != "" && len(s.faces) >= maxUsers {
			return s.newFace(scope)
		}
		s.faces[scope] = s.newFace(scope)
	}
	return s.faces[scope]
}

// projectServer is the server of one scope.
type projectServer struct {
	engine  *engine.Engine
	api     *api.Service
	scope   continuo.Scope
	options Options
	mcp     *mcp.Server
	handler http.Handler
	watches *watches
	tools   []offered
}

//go:embed instructions.md
var instructions string

func (s *Server) newFace(scope continuo.Scope) *projectServer {
	engine, options := s.engine, s.options
	f := &projectServer{engine: engine, api: &api.Service{Engine: engine, Version: options.Version}, scope: scope, options: options, tools: s.tools}
	f.mcp = mcp.NewServer(&mcp.Implementation{Name: "continuo", Title: "Continuo", Version: options.Version}, &mcp.ServerOptions{
		Instructions: instructions, PageSize: 100, SetCacheable: private,
		CompletionHandler: f.complete, SubscribeHandler: f.checkSubscription,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil }, // the middleware subscribed does it
		Capabilities:       capabilities(),
	})
	f.watches = newWatches(f)
	f.addTools(s.tools)
	f.addResources()
	f.addPrompts()
	f.mcp.AddReceivingMiddleware(f.guarded, f.audited, f.listed, f.subscribed)
	f.mcp.AddSendingMiddleware(f.acknowledged)
	streams := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return f.mcp }, &mcp.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: options.MaxBodyBytes, PropagateRequestCancellation: true, Logger: slog.New(slog.DiscardHandler),
		DisableLocalhostProtection: true, // checked by the caller: behind a proxy with a valid key, any name is allowed
	})
	f.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(engine.Draining(), cancel)()
		streams.ServeHTTP(w, r.WithContext(ctx))
	})
	return f
}

// capabilities are those that the SDK cannot derive. Warnings of tools go to the client's log; the list of resources
// changes with every conversation, and clients are not notified of each change.
func capabilities() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{
		Logging:   &mcp.LoggingCapabilities{}, //lint:ignore SA1019 clients of before 2026-07-28 ask for it
		Resources: &mcp.ResourceCapabilities{Subscribe: true},
	}
}

// private keeps results that are read from the log out of shared caches.
func private(_ context.Context, request mcp.Request, cacheable *mcp.Cacheable) {
	switch request.(type) {
	case *mcp.ReadResourceRequest, *mcp.ListResourcesRequest:
		cacheable.CacheScope = "private"
	}
}

// guarded turns a panic into an error response.
func (f *projectServer) guarded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				f.options.Logger.ErrorContext(ctx, "mcp_panicked", "method", method, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: internalMessage}
			}
		}()
		if read, ok := request.(*mcp.ReadResourceRequest); ok && !json.Valid([]byte(strconv.Quote(read.Params.URI))) {
			return nil, resourceNotFound(read.Params.URI) // the SDK's own error may be one that it cannot encode
		}
		return next(ctx, method, request)
	}
}
