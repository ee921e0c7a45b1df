package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/mcpserver"
)

// mcpHeader is what a client of MCP sends with a message.
var mcpHeader = []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-11-25"}

// exerciseMCP calls a tool through the server, and calls a server that does not speak MCP.
func exerciseMCP(t *testing.T) {
	t.Helper()
	e := newEngine(t, engine.Options{})
	handler := New(e, Options{MCP: mcpserver.New(e, mcpserver.Options{}).Handler})
	body := mcpCall("create_real_task", `{"description": "Mend the tap"}`)
	answer := ask(t, handler, "POST", "/mcp", body, mcpHeader...)
	if answer.status != http.StatusOK || !strings.Contains(string(answer.body), `"status":"queued"`) {
		t.Errorf("status %d: %s", answer.status, answer.body)
	}
	ask(t, newServer(t), "POST", "/mcp", body, mcpHeader...).failed(404, "not_found", "")
	ask(t, handler, "GET", "/mcp", "").failed(405, "method_not_allowed", "")
	ask(t, handler, "POST", "/mcp", body, append([]string{"Host", "elsewhere.example"}, mcpHeader...)...).failed(403, "host_not_allowed", "Host")
}

func mcpCall(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": %q, "arguments": %s}}`, tool, arguments)
}

// speaksMCP: through tools and resources, too, another's things are not found; that each of them keeps projects
// apart is tested where they are.
func (v *victim) callsMCPTools() {
	v.t.Helper()
	for _, message := range []string{
		mcpCall("get_real_task_status", `{"task_id": "`+v.task.ID+`"}`), mcpCall("get_agent_output", `{"agent_id": "`+v.agent.ID+`"}`),
		mcpCall("get_context", `{"conversation": "`+v.session+`"}`), mcpCall("list_real_tasks", `{}`), mcpCall("search_conversations", `{"query": "secret"}`),
		`{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}`,
		`{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "continuo://conversations/` + v.session + `/transcript"}}`,
	} {
		answer := v.askAsOther("POST", "/mcp", message, mcpHeader...)
		if own := v.askAsOwner("POST", "/mcp", message, mcpHeader...); own.status != http.StatusOK || string(own.body) == string(answer.body) {
			v.t.Errorf("%s: the victim gets %s, as the thief does: the test shows nothing", message, own.body)
		}
	}
	if answer := ask(v.t, v.handler, "POST", "/mcp", mcpCall("list_real_tasks", `{}`), mcpHeader...); answer.status != http.StatusUnauthorized {
		v.t.Errorf("without a key, status %d: %s", answer.status, answer.body)
	}
}
