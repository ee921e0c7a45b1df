package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
)

// maxSubscriptions bounds the resources of one request, and the resources that a project's sessions watch at the same
// time.
const (
	maxSubscriptions = 100
	maxWatches       = 1000
)

// checkSubscription refuses to watch a missing resource.
func (f *projectServer) checkSubscription(ctx context.Context, request *mcp.SubscribeRequest) error {
	_, err := f.watched(ctx, request.Params.URI)
	return f.protocolError(ctx, request.Params.URI, err)
}

// watched finds the conversation whose changes are changes of a resource. Resources that callers added to the SDK's
// server have none: those callers report their changes.
func (f *projectServer) watched(ctx context.Context, uri string) (*continuo.Conversation, error) {
	kind, values, ok := f.parseURI(uri)
	if !ok {
		if strings.HasPrefix(uri, scheme) {
			return nil, continuo.ErrNotFound
		}
		return nil, nil
	}
	conversation, err := kind.conversation(ctx, values)
	return &conversation, err
}

const scheme = "continuo://"

// subscribed watches the log for subscribers: for a listen request as long as it lasts (from protocol 2026-07-28 on),
// for a session until it unsubscribes or ends. A client without a session cannot be notified later: for it the older
// way to subscribe is refused, and not offered.
func (f *projectServer) subscribed(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		switch request := request.(type) {
		case *mcp.SubscriptionsListenRequest:
			return f.listen(ctx, method, request, next)
		case *mcp.SubscribeRequest:
			if !keepsSession(request) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "without a session there are no subscriptions before protocol version 2026-07-28: use subscriptions/listen"}
			}
			result, err := next(ctx, method, request)
			if err == nil {
				err = f.protocolError(ctx, request.Params.URI, f.watches.keep(request.Session, request.Params.URI))
			}
			return result, err
		case *mcp.UnsubscribeRequest:
			f.watches.drop(request.Session, request.Params.URI)
		}
		result, err := next(ctx, method, request)
		if begun, ok := result.(*mcp.InitializeResult); ok && !keepsSession(request) {
			without := *begun.Capabilities
			without.Resources = &mcp.ResourceCapabilities{}
			begun.Capabilities = &without
		}
		return result, err
	}
}

// keepsSession reports whether a request's client can receive notifications later: over pipes, or over HTTP with a
// session.
func keepsSession(request mcp.Request) bool {
	extra := request.GetExtra()
	return extra == nil || extra.Header == nil || request.GetSession().ID() != ""
}

// joinedKey is the context key of the resources that a listen request has joined.
type joinedKey struct{}

// listen watches the resources of a request while it is answered, from its acknowledgement on.
func (f *projectServer) listen(ctx context.Context, method string, request *mcp.SubscriptionsListenRequest, next mcp.MethodHandler) (mcp.Result, error) {
	if p := request.Params; p != nil && p.Notifications != nil && len(p.Notifications.ResourceSubscriptions) > maxSubscriptions {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("too many resources: one request may listen to %d", maxSubscriptions)}
	}
	var joined []string
	defer func() {
		for _, uri := range joined {
			f.watches.leave(uri)
		}
	}()
	return next(context.WithValue(ctx, joinedKey{}, &joined), method, request)
}

// acknowledged begins to watch a request's resources as soon as the SDK has registered it, before the client receives
// the acknowledgement: no later change is lost.
func (f *projectServer) acknowledged(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		params, ok := request.GetParams().(*mcp.SubscriptionsAcknowledgedParams)
		joined, listens := ctx.Value(joinedKey{}).(*[]string)
		if ok && listens {
			for _, uri := range params.Notifications.ResourceSubscriptions {
				if err := f.watches.join(ctx, uri); err != nil {
					return nil, f.protocolError(ctx, uri, err)
				}
				*joined = append(*joined, uri)
			}
		}
		return next(ctx, method, request)
	}
}

// watches are the watched resources, each once, however many subscribers it has.
type watches struct {
	face *projectServer

	mu      sync.Mutex
	closed  bool
	byURI   map[string]*watch
	session map[*mcp.ServerSession]map[string]bool // what sessions have subscribed to
	done    sync.WaitGroup                         // the sessions with an attend goroutine
}

// watch is a resource that is watched.
type watch struct {
	users  int
	cancel context.CancelFunc
	ended  chan struct{}
}

func newWatches(f *projectServer) *watches {
	return &watches{face: f, byURI: map[string]*watch{}, session: map[*mcp.ServerSession]map[string]bool{}}
}

// join adds a user of a resource; leave removes it.
func (w *watches) join(ctx context.Context, uri string) error {
	conversation, err := w.face.watched(ctx, uri)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return continuo.ErrClosed
	case w.byURI[uri] != nil:
		w.byURI[uri].users++
		return nil
	case len(w.byURI) >= maxWatches:
		return &api.Problem{Code: "too_many_subscriptions", Message: "too many resources are watched: unsubscribe from some"}
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &watch{users: 1, cancel: cancel, ended: make(chan struct{})}
	w.byURI[uri] = one
	go func() {
		defer close(one.ended)
		if conversation != nil {
			w.face.watch(watching, uri, *conversation)
		}
	}()
	return nil
}

// leave removes a user; the last one ends the watch and waits for it.
func (w *watches) leave(uri string) {
	w.mu.Lock()
	one := w.byURI[uri]
	if one.users--; one.users > 0 {
		w.mu.Unlock()
		return
	}
	delete(w.byURI, uri)
	w.mu.Unlock()
	one.cancel()
	<-one.ended
}

// keep watches a resource for a session until the session unsubscribes or ends.
func (w *watches) keep(session *mcp.ServerSession, uri string) error {
	w.mu.Lock()
	known := w.session[session]
	has := known[uri]
	w.mu.Unlock()
	if has {
		return nil
	}
	if err := w.join(context.Background(), uri); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	known = w.session[session]
	if known == nil {
		known = map[string]bool{}
		w.session[session] = known
		w.done.Go(func() { w.attend(session) })
	}
	if known[uri] { // the same session subscribed twice at once
		w.byURI[uri].users--
	}
	known[uri] = true
	return nil
}

// attend drops the subscriptions of a session when it ends.
func (w *watches) attend(session *mcp.ServerSession) {
	_ = session.Wait() // it does not matter how it ended
	w.mu.Lock()
	uris := w.session[session]
	delete(w.session, session)
	w.mu.Unlock()
	for uri := range uris {
		w.leave(uri)
	}
}

// drop ends the watch of a resource for a session.
func (w *watches) drop(session *mcp.ServerSession, uri string) {
	w.mu.Lock()
	has := w.session[session][uri]
	delete(w.session[session], uri)
	w.mu.Unlock()
	if has {
		w.leave(uri)
	}
}

// close ends the sessions that have subscribed, and waits for their watches.
func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	var sessions []*mcp.ServerSession
	for session := range w.session {
		sessions = append(sessions, session)
	}
	w.mu.Unlock()
	for _, session := range sessions {
		_ = session.Close() // it may have ended
	}
	w.done.Wait()
}

// watch notifies the subscribers of a resource of each change of its conversation after the given state, until ctx is
// done or the conversation is deleted; the deletion is notified as well.
func (f *projectServer) watch(ctx context.Context, uri string, was continuo.Conversation) {
	listener := f.engine.Conversations.Listen(was.ID)
	defer listener.Close()
	for {
		changed := listener.Changed()
		is, err := f.engine.Conversations.Conversation(ctx, was.ID)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, continuo.ErrNotFound):
			_ = f.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
			<-ctx.Done()
			return
		case err == nil && (is.LastSeq != was.LastSeq || !is.UpdatedAt.Equal(was.UpdatedAt)):
			was = is
			_ = f.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
		}
		if !listener.Wait(ctx, changed, f.options.Poll) {
			return
		}
	}
}
