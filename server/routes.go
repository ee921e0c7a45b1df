package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/continuo-log/continuo/api"
)

// route is an operation and its handler.
type route struct {
	api.Operation
	serve handler
}

// handler answers a request, or returns an error without having written anything.
type handler func(w http.ResponseWriter, r *http.Request) error

// routes lists every call that the server answers, in the order of the table of operations.
func (s *server) routes() []route {
	own := s.handlers()
	var routes []route
	for _, o := range s.api.Operations() {
		handlerOf := own[o.ID]
		switch {
		case handlerOf != nil:
			routes = append(routes, route{o, handlerOf(o)})
			delete(own, o.ID)
		case o.Adapted():
			panic("server: the operation " + o.ID + " has no handler")
		default:
			routes = append(routes, route{o, s.operation(o)})
		}
	}
	for id := range own {
		panic("server: there is no operation " + id)
	}
	return routes
}

// handlers are those of the operations whose answers are not values, or that only the server can carry out, by id.
func (s *server) handlers() map[string]func(api.Operation) handler {
	return map[string]func(api.Operation) handler{
		"chat":                raw(s, s.chat),
		"exportConversation":  raw(s, s.exportConversation),
		"followConversation":  raw(s, s.conversationEvents),
		"followConversations": raw(s, s.listEvents),
		"followFeed":          raw(s, s.feedEvents),
		"followTurn":          raw(s, s.turnEvents),
		"resumeTurn":          raw(s, s.resumeTurn),
		"startRun":            raw(s, s.startRun),
		"followRun":           raw(s, s.runEvents),
		"sendCrewMessage":     raw(s, s.sendCrewMessage),
		"followCrew":          raw(s, s.crewEvents),
		"showSession":         raw(s, s.showSession),
		"openSession":         raw(s, s.openSession),
		"closeSession":        raw(s, s.closeSession),
		"listKeys":            raw(s, s.listKeys),
		"createKey":           raw(s, s.createKey),
		"revokeKey":           raw(s, s.revokeKey),
		"speakMCP":            raw(s, s.serveMCP),
		"metrics":             raw(s, s.showMetrics),
		"openapi":             raw(s, s.showOpenAPI),
		"index":               raw(s, s.showIndex),
	}
}

// pattern is the route's pattern for http.ServeMux.
func (r route) pattern() string { return r.Method + " " + r.Path }

// shownPath is a route's path as documentation writes it.
func (r route) shownPath() string { return strings.TrimSuffix(r.Path, "{$}") }

// indexPage writes the page at /.
func indexPage(version string, routes []route) []byte {
	var page bytes.Buffer
	fmt.Fprintf(&page, "Continuo %s\n\nA conversation log and context engine for LLM agents. This is its HTTP API:\n\n", version)
	for _, route := range routes {
		fmt.Fprintf(&page, "  %-6s %-47s %s\n", route.Method, route.shownPath(), route.Summary)
	}
	return page.Bytes()
}

// addInspector adds the routes of the page.
func (s *server) addInspector() {
	page := s.options.Inspector
	if page == nil {
		return
	}
	s.pages = map[string]bool{}
	for _, pattern := range page.Patterns() {
		s.pages[pattern] = true
		s.mux.Handle(pattern, page)
	}
}

func (s *server) showIndex(w http.ResponseWriter, r *http.Request, _ api.Nothing) error {
	if s.options.Inspector != nil {
		w.Header().Add("Vary", "Accept")
		if accepts(r, "text/html") {
			s.options.Inspector.ServeHTTP(w, r)
			return nil
		}
	}
	example := fmt.Sprintf("\nTry it:\n\n  curl -s http://%s/chat -d '{\"message\": \"hello\"}'\n", r.Host)
	return writeText(w, append(bytes.Clone(s.index), example...))
}

func (s *server) showMetrics(w http.ResponseWriter, r *http.Request, _ api.Nothing) error {
	promhttp.HandlerFor(s.options.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

func (s *server) showOpenAPI(w http.ResponseWriter, _ *http.Request, _ api.Nothing) error {
	document, err := s.openAPI()
	if err != nil {
		return err
	}
	return writeBody(w, http.StatusOK, "application/json", document)
}
