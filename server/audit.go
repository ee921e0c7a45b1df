package server

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/audit"
)

// audited is a request while it is answered: its event is recorded before the first byte of the answer.
type audited struct {
	server  *server
	request *http.Request
	pattern string
	caller  audit.Caller
	subject *audit.Subject
	done    bool
}

// callerForAudit is who sends a request.
func (s *server) callerForAudit(r *http.Request, caller caller, requestID string) audit.Caller {
	return audit.Caller{
		Origin: audit.OriginHTTP, ProjectID: cmp.Or(caller.scope.ProjectID, s.options.Project), KeyID: caller.keyID, SessionID: caller.sessionID,
		UserID: caller.scope.UserID, Remote: s.remote(r), RequestID: requestID,
	}
}

// record records the event of the request, once. A change is durable when it returns.
func (a *audited) record(status int) {
	if a.done || a.server.options.Audit == nil {
		return
	}
	a.done = true
	operation := a.server.operations[a.pattern]
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests
	change := a.changes()
	switch {
	case operation.Probe, a.pattern == "preflight":
		return
	case refused:
	case operation.ID == "speakMCP", a.pattern == "none", a.server.pages[a.pattern]: // the tools and resources have events of their own
		return
	case !change && (operation.Public || !a.server.options.AuditReads):
		return
	}
	event := audit.Event{Caller: a.caller, Operation: a.operation(operation), Status: status}
	event.ConversationID, event.Target = a.named()
	a.subject.Fill(&event)
	if refused || !change || status >= 400 && status < 500 {
		a.server.options.Audit.Add(event)
		return
	}
	if err := a.server.options.Audit.Commit(a.request.Context(), event); err != nil {
		a.server.options.Logger.ErrorContext(a.request.Context(), "audit_delayed", "request_id", a.caller.RequestID, "error", err.Error())
	}
}

// changes reports whether the request may change something.
func (a *audited) changes() bool {
	reads := a.request.Method == http.MethodGet || a.request.Method == http.MethodHead
	return !reads || isUpgrade(a.request)
}

// modelPaths are the paths of the gateway that have an operation of their own in the audit log, the longer ones first.
var modelPaths = []string{
	"/v1/chat/completions", "/v1/messages/count_tokens", "/v1/messages", "/v1/responses", "/v1/conversations", "/v1/embeddings", "/v1/models",
	"/v1beta/models",
}

// operation names what is asked for.
func (a *audited) operation(operation api.Operation) string {
	switch {
	case operation.ID != "":
		return operation.ID
	case !slices.Contains(a.server.options.GatewayPatterns, a.pattern):
		return "none"
	}
	for _, path := range modelPaths {
		if strings.HasPrefix(a.request.URL.Path, path) {
			return "gateway." + a.request.Method + path
		}
	}
	return "gateway." + a.request.Method
}

// named are the ids in the path: that of a conversation, and the others.
func (a *audited) named() (conversation, target string) {
	var others []string
	for i, part := range strings.Split(a.pattern, "/") {
		name, isName := strings.CutPrefix(part, "{")
		if !isName {
			continue
		}
		value := a.request.PathValue(strings.TrimSuffix(name, "}"))
		if i == 3 && strings.Contains(a.pattern, "/api/conversations/{") {
			conversation = value
		} else if value != "" {
			others = append(others, value)
		}
	}
	return conversation, strings.Join(others, "/")
}

// remote is the address of the client: that of the connection or, where this is a trusted proxy, the last one in
// X-Forwarded-For that is none.
func (s *server) remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.isProxy(host); i-- {
		address, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		host = address.Unmap().String()
	}
	return host
}

func (s *server) isProxy(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(s.options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(address.Unmap()) })
}
