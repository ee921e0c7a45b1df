package server

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/continuo-log/continuo/api"
)

// route is one call of the API.
type route struct {
	method, path string
	summary      string // for the page at /
	serve        func(w http.ResponseWriter, r *http.Request) error
}

// routes lists every call that the server answers, in the order of the index page.
func (s *server) routes() []route {
	s.operations = map[string]api.Operation{}
	for _, o := range s.api.Operations() {
		s.operations[o.ID] = o
	}
	return slices.Concat(s.chatRoutes(), s.conversationRoutes(), s.turnRoutes(), s.runRoutes(), s.crewRoutes(), s.taskRoutes(), s.serviceRoutes())
}

func (s *server) chatRoutes() []route {
	return []route{
		raw(s, "chat", s.chat),
		s.route("listModels"),
		s.route("listAgents"),
	}
}

func (s *server) conversationRoutes() []route {
	return []route{
		s.route("listConversations"),
		s.route("createConversation"),
		s.route("importConversation"),
		s.route("getConversation"),
		s.route("changeConversation"),
		s.route("deleteConversation"),
		s.route("forkConversation"),
		s.route("archiveConversation"),
		s.route("restoreConversation"),
		s.route("redactEntries"),
		raw(s, "exportConversation", s.exportConversation),
		s.route("listEntries"),
		s.route("appendEntries"),
		s.route("showRequest"),
		s.route("showPart"),
		s.route("showContext"),
		s.route("showTranscript"),
	}
}

func (s *server) turnRoutes() []route {
	return []route{
		s.route("listTurns"),
		s.route("getTurn"),
		raw(s, "followTurn", s.turnEvents),
		raw(s, "resumeTurn", s.resumeTurn),
		s.route("cancelTurn"),
		s.route("decide"),
	}
}

func (s *server) runRoutes() []route {
	return []route{
		s.route("listWorkflows"),
		s.route("showWorkflowSchema"),
		s.route("getWorkflow"),
		s.route("listRuns"),
		raw(s, "startRun", s.startRun),
		s.route("getRun"),
		raw(s, "followRun", s.runEvents),
		s.route("resumeRun"),
		s.route("setStep"),
		s.route("retryStep"),
		s.route("skipStep"),
		s.route("stopRun"),
		s.route("cancelRun"),
		s.route("decideRun"),
	}
}

func (s *server) crewRoutes() []route {
	return []route{
		s.route("listCrews"),
		s.route("showCrewSchema"),
		s.route("getCrew"),
		raw(s, "sayToCrew", s.sayToCrew),
		s.route("getCrewStatus"),
		raw(s, "followCrew", s.crewEvents),
		s.route("stopCrew"),
		s.route("resumeCrew"),
		s.route("resetCrew"),
		s.route("restoreCrew"),
		s.route("showRoleContext"),
		s.route("listRounds"),
		s.route("compareRoles"),
	}
}

func (s *server) taskRoutes() []route {
	return []route{
		s.route("listTasks"),
		s.route("createTask"),
		s.route("getTask"),
		s.route("showTaskPrompt"),
		s.route("deployAgent"),
		s.route("getDeployedAgent"),
		s.route("showAgentOutput"),
		s.route("killAgent"),
		s.route("reportFinding"),
	}
}

func (s *server) serviceRoutes() []route {
	return []route{
		s.route("search"),
		{"POST", "/mcp", "speak the Model Context Protocol", s.speakMCP},
		s.route("health"),
		s.route("ready"),
		{"GET", "/metrics", "figures for Prometheus", s.showMetrics},
		{"GET", "/openapi.json", "this API as an OpenAPI document", s.showOpenAPI},
		{"GET", "/{$}", "this page", s.showIndex},
	}
}

// route is the route of an operation of the table.
func (s *server) route(id string) route {
	o := s.find(id)
	return route{o.Method, o.Path, o.Summary, s.operation(o)}
}

// find returns the operation with an id.
func (s *server) find(id string) api.Operation {
	o, ok := s.operations[id]
	if !ok {
		panic("server: there is no operation " + id)
	}
	return o
}

// shownPath is a route's path as documentation writes it.
func (r route) shownPath() string {
	if r.path == "/{$}" {
		return "/"
	}
	return r.path
}

// indexPage writes the page at /.
func indexPage(version string, routes []route) []byte {
	var page bytes.Buffer
	fmt.Fprintf(&page, "Continuo %s\n\nA conversation log and context engine for LLM agents. This is its HTTP API:\n\n", version)
	for _, route := range routes {
		fmt.Fprintf(&page, "  %-6s %-47s %s\n", route.method, route.shownPath(), route.summary)
	}
	return page.Bytes()
}

func (s *server) showIndex(w http.ResponseWriter, r *http.Request) error {
	example := fmt.Sprintf("\nTry it:\n\n  curl -s http://%s/chat -d '{\"message\": \"hello\"}'\n", r.Host)
	return writeText(w, append(bytes.Clone(s.index), example...))
}

func (s *server) showMetrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(s.options.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

func (s *server) showOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	document, err := s.openAPI()
	if err != nil {
		return err
	}
	return writeBody(w, http.StatusOK, "application/json", document)
}
