package server

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// route is one call of the API.
type route struct {
	method, path string
	summary      string // for the page at /
	serve        func(w http.ResponseWriter, r *http.Request) error
}

// routes lists every call that the server answers.
func (s *server) routes() []route {
	const conversations, one = "/api/conversations", "/api/conversations/{id}"
	const turns, runs, run = one + "/turns", "/api/runs", "/api/runs/{run}"
	const crews, crew = "/api/crews", "/api/crews/{crew}"
	const tasks, oneTask, agent = "/api/tasks", "/api/tasks/{task}", "/api/tasks/{task}/agents/{agent}"
	return []route{
		{"POST", "/chat", "begin a turn: send a message, get the answer, whole or as a stream", s.chat},
		{"GET", "/api/models", "list the models", s.listModels},
		{"GET", "/api/agents", "list the agents", s.listAgents},
		{"GET", conversations, "list conversations, the newest change first", s.listConversations},
		{"POST", conversations, "begin an empty conversation", s.createConversation},
		{"POST", conversations + "/import", "make a conversation of a list of messages", s.importConversation},
		{"GET", one, "show a conversation", s.getConversation},
		{"PATCH", one, "change its title, metadata, mode or agent", s.changeConversation},
		{"DELETE", one, "delete it", s.deleteConversation},
		{"POST", one + "/fork", "begin a conversation with its entries", s.forkConversation},
		{"POST", one + "/archive", "take it out of the database, into an archive", s.archiveConversation},
		{"POST", one + "/restore", "bring it back from its archive", s.restoreConversation},
		{"POST", one + "/redact", "remove for good what entries say", s.redactEntries},
		{"GET", one + "/export", "write it out", s.exportConversation},
		{"GET", one + "/entries", "list its entries", s.listEntries},
		{"POST", one + "/entries", "append entries", s.appendEntries},
		{"GET", one + "/entries/{seq}/request", "show the request that an answer came of", s.showRequest},
		{"GET", one + "/entries/{seq}/parts/{n}", "show a part of an entry's content, whole", s.showPart},
		{"GET", one + "/context", "show what a model would be sent, and why", s.showContext},
		{"GET", one + "/transcript", "show it as text", s.showTranscript},
		{"GET", turns, "list its turns, the newest first", s.listTurns},
		{"GET", turns + "/{turn}", "show a turn", s.getTurn},
		{"GET", turns + "/{turn}/events", "follow a turn, or hear it again", s.turnEvents},
		{"POST", turns + "/{turn}/resume", "go on with a turn that failed", s.resumeTurn},
		{"POST", turns + "/{turn}/cancel", "stop a turn", s.cancelTurn},
		{"POST", turns + "/{turn}/approvals", "decide on a call that waits for it", s.decide},
		{"GET", "/api/workflows", "list the workflows", s.listWorkflows},
		{"GET", "/api/workflows/schema", "show the JSON Schema of workflows' files", s.showWorkflowSchema},
		{"GET", "/api/workflows/{id}", "show a workflow", s.getWorkflow},
		{"GET", runs, "list runs of workflows, the newest first", s.listRuns},
		{"POST", runs, "begin a run of a workflow", s.startRun},
		{"GET", run, "show how a run stands", s.getRun},
		{"GET", run + "/events", "follow a run, or hear it again", s.runEvents},
		{"POST", run + "/resume", "go on with a run that failed or was stopped", s.resumeRun},
		{"POST", run + "/set", "set a step's outputs by hand", s.setStep},
		{"POST", run + "/retry", "carry a step out again, and what depends on it", s.retryStep},
		{"POST", run + "/skip", "go on with a run without one of its steps", s.skipStep},
		{"POST", run + "/stop", "stop a run until it is resumed", s.stopRun},
		{"POST", run + "/cancel", "end a run for good", s.cancelRun},
		{"POST", run + "/approvals", "answer the question of an approval node", s.decideRun},
		{"GET", crews, "list the crews", s.listCrews},
		{"GET", crews + "/schema", "show the JSON Schema of crews' files", s.showCrewSchema},
		{"GET", crew, "show a crew", s.getCrew},
		{"POST", crew + "/messages", "say something to a crew", s.sayToCrew},
		{"GET", crew + "/status", "show how a crew stands in a session", s.getCrewStatus},
		{"GET", crew + "/events", "follow a crew, or hear it again", s.crewEvents},
		{"POST", crew + "/stop", "stop a crew until it is resumed or spoken to", s.stopCrew},
		{"POST", crew + "/resume", "go on with a cycle that failed or was stopped", s.resumeCrew},
		{"POST", crew + "/reset", "let a crew begin anew; nothing is deleted", s.resetCrew},
		{"POST", crew + "/restore", "take a reset back", s.restoreCrew},
		{"GET", crew + "/context", "show what a role sees, or saw", s.showRoleContext},
		{"GET", crew + "/rounds", "list the requests that a role was asked with", s.listRounds},
		{"GET", crew + "/compare", "show what two roles see, and where it differs", s.compareRoles},
		{"GET", tasks, "list tasks, the newest change first", s.listTasks},
		{"POST", tasks, "give a task away, with the history that explains it", s.createTask},
		{"GET", oneTask, "show how a task stands", s.getTask},
		{"GET", oneTask + "/prompt", "show what an agent is told", s.showTaskPrompt},
		{"POST", oneTask + "/agents", "set an agent to work on it", s.deployAgent},
		{"GET", agent, "show how an agent stands", s.getDeployed},
		{"GET", agent + "/output", "show what it has said", s.showOutput},
		{"POST", agent + "/kill", "end its work for good", s.killAgent},
		{"POST", oneTask + "/findings", "keep what was found", s.reportFinding},
		{"GET", "/api/search", "search the conversations", s.search},
		{"POST", "/mcp", "speak the Model Context Protocol", s.speakMCP},
		{"GET", "/healthz", "tell whether the program runs", s.health},
		{"GET", "/readyz", "tell whether the store answers", s.ready},
		{"GET", "/metrics", "figures for Prometheus", s.showMetrics},
		{"GET", "/openapi.json", "this API as an OpenAPI document", s.showOpenAPI},
		{"GET", "/{$}", "this page", s.showIndex},
	}
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

func (s *server) health(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, struct {
		Status  string `json:"status"`
		Version string `json:"version"`
	}{"ok", s.options.Version})
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

func (s *server) listModels(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	type model struct {
		Name    string `json:"name"`
		Default bool   `json:"default"`
	}
	models := []model{}
	for i, name := range s.engine.Models() {
		models = append(models, model{name, i == 0})
	}
	return writeJSON(w, http.StatusOK, list[model]{Data: models})
}
