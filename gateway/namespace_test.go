package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// Codex groups the functions of an MCP server in a tool of the type namespace. Before a model of another protocol they are
// functions, and a call comes back with its namespace: streamed, whole and in the next request.
func TestFunctionsOfNamespacesReachOtherProtocols(t *testing.T) {
	const (
		tools  = `"tools":[{"type":"namespace","name":"mcp__ours","description":"Ours.","tools":[{"type":"function","name":"append","description":"Adds.","parameters":{"type":"object"},"strict":false}]},{"type":"function","name":"look","parameters":{"type":"object"}}]`
		answer = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"mcp__ours__append","arguments":"{}"}},{"index":1,"id":"b","type":"function","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
		user   = `{"type":"message","role":"user","content":"hi"}`
		calls  = `{"type":"function_call","call_id":"a","namespace":"mcp__ours","name":"append","arguments":"{}"},{"type":"function_call","call_id":"b","name":"look","arguments":"{}"}`
		done   = `{"type":"function_call_output","call_id":"a","output":"A"},{"type":"function_call_output","call_id":"b","output":"B"}`
	)
	for name, kept := range map[string]string{"the client keeps its history": `"store":false,`, "the server keeps it": ""} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, stream(answer), stream(answer), stream(chatStream))
			g := newGateway(t, u)
			for _, streamed := range []string{`"stream":true,`, ""} {
				response, got := g.post(t, "/v1/responses", `{"model":"gpt",`+kept+streamed+tools+`,"input":[`+user+`]}`)
				want := `"name":"append","arguments":"{}","namespace":"mcp__ours"`
				if response.StatusCode != http.StatusOK || !strings.Contains(got, want) || !strings.Contains(got, `"name":"look","arguments":"{}"}`) {
					t.Errorf("got %d %s", response.StatusCode, got)
				}
				if sent := (<-u.requests).body; !strings.Contains(sent, `"name":"mcp__ours__append","description":"Adds."`) || strings.Contains(sent, "namespace") {
					t.Errorf("the upstream got %s", sent)
				}
			}
			if kept == "" {
				return
			}
			response, got := g.post(t, "/v1/responses", `{"model":"gpt",`+kept+tools+`,"input":[`+user+","+calls+","+done+`]}`)
			if sent := (<-u.requests).body; !strings.Contains(sent, `"name":"mcp__ours__append","arguments":"{}"`) || response.Header.Get("X-Continuo-Matched") != "prefix" {
				t.Errorf("%s: the upstream got %s, and the client %s", response.Header.Get("X-Continuo-Matched"), sent, got)
			}
		})
	}
}
