package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/mcptool"
)

// toolServer is an MCP server over HTTP that counts the calls of its tools.
type toolServer struct {
	*httptest.Server
	calls         atomic.Int32
	authorization atomic.Value
}

func newToolServer(t *testing.T) *toolServer {
	s := &toolServer{}
	server := mcp.NewServer(&mcp.Implementation{Name: "testing", Version: "1"}, nil)
	add := func(name string, readOnly bool, run func(text string) (string, error)) {
		server.AddTool(&mcp.Tool{
			Name: name, Description: "Does " + name + ".", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly},
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
		}, func(_ context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.calls.Add(1)
			var in struct{ Text string }
			if err := json.Unmarshal(request.Params.Arguments, &in); err != nil {
				return nil, err
			}
			output, err := run(in.Text)
			result := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: output}}}
			if err != nil {
				result.IsError, result.Content = true, []mcp.Content{&mcp.TextContent{Text: err.Error()}}
			}
			return result, nil
		})
	}
	add("echo", true, func(text string) (string, error) { return "echo: " + text, nil })
	add("erase", false, func(text string) (string, error) { return "erased " + text, nil })
	add("fail", false, func(string) (string, error) { return "", errors.New("the disk is full") })
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.authorization.Store(r.Header.Get("Authorization"))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// newMCPGateway is a gateway that may connect to a server.
func newMCPGateway(t *testing.T, u *upstream, s *toolServer) *testGateway {
	pool := mcptool.NewPool(mcptool.Options{})
	t.Cleanup(func() { _ = pool.Close() })
	return newGatewayWith(t, u, storetest.NewMemory(), gateway.Options{MCP: gateway.MCP{URLs: []string{s.URL + "/mcp"}, Pool: pool}})
}

// chatCalls is a streamed answer with calls, given as pairs of a name and arguments.
func chatCalls(pairs ...string) string {
	var wire strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&wire, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":%q,"arguments":""}}]}}]}`+"\n\n", i/2, i/2, pairs[i])
		fmt.Fprintf(&wire, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}}]}`+"\n\n", i/2, pairs[i+1])
	}
	return wire.String() + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
}

// mcpOutput are the items of a response about MCP servers.
type mcpOutput struct {
	ID, Status string
	Output     []struct {
		ID, Type, Status, Name, Arguments string
		ServerLabel                       string  `json:"server_label"`
		Output                            *string `json:"output"`
		Error                             *string `json:"error"`
		ApprovalRequestID                 *string `json:"approval_request_id"`
		Tools                             []struct{ Name string }
	}
}

func (o mcpOutput) types() string {
	var types []string
	for _, item := range o.Output {
		types = append(types, item.Type)
	}
	return strings.Join(types, " ")
}

func mcpTool(s *toolServer, more string) string {
	return fmt.Sprintf(`{"type":"mcp","server_label":"ours","server_url":%q%s}`, s.URL+"/mcp", more)
}

// A tool of an MCP server runs here, in the turn in which the model called it, and is reported in items of the Responses API:
// in the stream, in the response as it is retrieved and replayed, and in the lists.
func TestToolsOfMCPServersRunHere(t *testing.T) {
	s := newToolServer(t)
	u := newUpstream(t, stream(chatCalls("ours_echo", `{"text":"a"}`, "ours_fail", `{}`)), stream(chatStream), stream(chatStream))
	g := newMCPGateway(t, u, s)
	const secret = "the-clients-token"
	tools := `[` + mcpTool(s, `,"authorization":"`+secret+`","require_approval":"never","allowed_tools":["echo","fail"]`) + `]`
	_, streamed := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","stream":true,"tools":`+tools+`}`)
	events := eventsOf(t, streamed)
	final := decode[shownResponse](t, string(events[len(events)-1].Response))
	checkLifecycle(t, events, final)
	var kinds []string
	for _, event := range events {
		if strings.Contains(event.Type, "mcp") {
			kinds = append(kinds, strings.TrimPrefix(event.Type, "response."))
		}
	}
	if want := "mcp_list_tools.in_progress mcp_list_tools.completed mcp_call.in_progress mcp_call_arguments.delta mcp_call.in_progress mcp_call_arguments.delta " +
		"mcp_call_arguments.done mcp_call_arguments.done mcp_call.completed mcp_call.failed"; strings.Join(kinds, " ") != want {
		t.Errorf("the stream has\n%s\nwant\n%s", strings.Join(kinds, " "), want)
	}
	shown := decode[mcpOutput](t, string(events[len(events)-1].Response))
	if shown.types() != "mcp_list_tools mcp_call mcp_call message" || shown.Status != "completed" {
		t.Fatalf("the response is %+v", shown)
	}
	if list := shown.Output[0]; len(list.Tools) != 2 || list.Tools[0].Name != "echo" || list.ServerLabel != "ours" {
		t.Errorf("the tools are %+v", list)
	}
	if call := shown.Output[1]; call.Name != "echo" || call.Arguments != `{"text":"a"}` || call.Output == nil || *call.Output != "echo: a" || call.Error != nil || call.Status != "completed" {
		t.Errorf("the call is %+v", call)
	}
	if call := shown.Output[2]; call.Status != "failed" || call.Error == nil || *call.Error != "the disk is full" || call.Output != nil {
		t.Errorf("the failed call is %+v", call)
	}
	if got := g.get(t, "/v1/responses/"+final.ID); got.body != string(events[len(events)-1].Response)+"\n" {
		t.Errorf("retrieved\n%s\nstreamed\n%s", got.body, events[len(events)-1].Response)
	}
	if got := g.get(t, "/v1/responses/"+final.ID+"?stream=true"); got.body != streamed {
		t.Errorf("replayed\n%s\nwant\n%s", got.body, streamed)
	}
	listed := g.get(t, "/v1/conversations/"+conversationOf(final.ID)+"/items?order=asc")
	if types := decode[struct{ Data []struct{ Type string } }](t, listed.body).Data; len(types) != 4 || types[1].Type != "mcp_call" || !strings.Contains(listed.body, `"output":"echo: a"`) {
		t.Errorf("the items are %s", listed.body)
	}
	if item := g.get(t, "/v1/conversations/"+conversationOf(final.ID)+"/items/"+shown.Output[1].ID); !strings.Contains(item.body, `"output":"echo: a"`) {
		t.Errorf("the item is %s", item.body)
	}
	if authorization := s.authorization.Load(); authorization != "Bearer "+secret {
		t.Errorf("the server got the authorization %v", authorization)
	}
	first, second := <-u.requests, <-u.requests
	if !strings.Contains(first.body, `"name":"ours_echo"`) || strings.Contains(first.body, "ours_erase") || !strings.Contains(second.body, "echo: a") {
		t.Errorf("the model was sent\n%s\n%s", first.body, second.body)
	}
	response, next := g.post(t, "/v1/responses", `{"model":"gpt","input":"more","previous_response_id":"`+final.ID+`","tools":`+tools+`}`)
	if types := decode[mcpOutput](t, next).types(); types != "message" {
		t.Errorf("a response lists the same tools again: %s", next)
	}
	for _, entry := range g.entries(t, response) {
		if raw, _ := json.Marshal(entry); strings.Contains(string(raw), secret) {
			t.Errorf("the log has the client's token: %s", raw)
		}
	}
	if strings.Contains(streamed+next+first.body+second.body, secret) {
		t.Error("the client's token is shown, or was sent to the model")
	}
}

// A client may have a tool of a server called, or any tool of it: the model must in its first answer, and not in the next,
// which has the result.
func TestAToolOfAnMCPServerMustBeCalled(t *testing.T) {
	s := newToolServer(t)
	of := func(mode string, names ...string) string {
		var tools []string
		for _, name := range names {
			tools = append(tools, `{"function":{"name":"`+name+`"},"type":"function"}`)
		}
		return `"tool_choice":{"allowed_tools":{"mode":"` + mode + `","tools":[` + strings.Join(tools, ",") + `]},"type":"allowed_tools"}`
	}
	for choice, c := range map[string]struct{ first, second string }{
		`{"type":"mcp","server_label":"ours","name":"echo"}`: {first: `"tool_choice":{"function":{"name":"ours_echo"},"type":"function"}`},
		`{"type":"mcp","server_label":"ours"}`:               {of("required", "ours_echo", "ours_erase", "ours_fail"), of("auto", "ours_echo", "ours_erase", "ours_fail")},
		`{"type":"allowed_tools","mode":"required","tools":[{"type":"mcp","server_label":"ours","name":"echo"},{"type":"function","name":"own"}]}`: {
			of("required", "ours_echo", "own"), of("auto", "ours_echo", "own"),
		},
	} {
		u := newUpstream(t, stream(chatCalls("ours_echo", `{"text":"a"}`)), stream(chatStream))
		g := newMCPGateway(t, u, s)
		tools := `[{"type":"function","name":"own","parameters":{}},` + mcpTool(s, `,"require_approval":"never"`) + `]`
		_, answer := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","tools":`+tools+`,"tool_choice":`+choice+`}`)
		if types := decode[mcpOutput](t, answer).types(); types != "mcp_list_tools mcp_call message" {
			t.Errorf("%s: the response has %s", choice, answer)
			continue
		}
		first, second := <-u.requests, <-u.requests
		if !strings.Contains(first.body, c.first) || !strings.Contains(second.body, c.second) || c.second == "" && strings.Contains(second.body, "tool_choice") {
			t.Errorf("%s: the model was sent\n%s\n%s", choice, first.body, second.body)
		}
	}
	u := newUpstream(t)
	g := newMCPGateway(t, u, s)
	for _, choice := range []string{`{"type":"mcp","server_label":"theirs"}`, `{"type":"mcp","server_label":"ours","name":"none"}`, `{"type":"mcp"}`} {
		response, answer := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","tools":[`+mcpTool(s, "")+`],"tool_choice":`+choice+`}`)
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(answer, `"param":"tool_choice"`) {
			t.Errorf("%s: %d %s", choice, response.StatusCode, answer)
		}
	}
}

// A call that the client must approve ends the response with the question; it runs, once, when the answer comes, whether the
// client continues the response or sends its whole history again.
func TestCallsOfMCPServersWaitForAnApproval(t *testing.T) {
	for name, c := range map[string]struct {
		whole, approve bool
		calls          int32
		sent, types    string
	}{
		"approved":                     {approve: true, calls: 1, sent: "erased b", types: "mcp_call message"},
		"denied":                       {sent: "not approved: too risky", types: "message"},
		"approved, with whole history": {whole: true, approve: true, calls: 1, sent: "erased b", types: "mcp_list_tools mcp_call message"},
		"denied, with whole history":   {whole: true, sent: "not approved: too risky", types: "mcp_list_tools message"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newToolServer(t)
			u := newUpstream(t, stream(chatCalls("ours_erase", `{"text":"b"}`)), stream(chatStream), stream(chatStream))
			g := newMCPGateway(t, u, s)
			tools := `[` + mcpTool(s, `,"require_approval":{"never":{"tool_names":["echo"]}}`) + `]`
			_, body := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","tools":`+tools+`}`)
			asked := decode[mcpOutput](t, body)
			if asked.types() != "mcp_list_tools mcp_approval_request" || asked.Output[1].Name != "erase" || asked.Output[1].Arguments != `{"text":"b"}` || asked.Status != "completed" || s.calls.Load() != 0 {
				t.Fatalf("the response is %s, after %d calls", body, s.calls.Load())
			}
			answer := fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":%q,"approve":%t,"reason":"too risky"}`, asked.Output[1].ID, c.approve)
			request := fmt.Sprintf(`{"model":"gpt","stream":true,"tools":%s,"previous_response_id":%q,"input":[%s]}`, tools, asked.ID, answer)
			if c.whole {
				output := decode[struct{ Output []json.RawMessage }](t, body).Output
				request = fmt.Sprintf(`{"model":"gpt","stream":true,"tools":%s,"input":[{"role":"user","content":"hi"},%s,%s,%s]}`, tools, output[0], output[1], answer)
			}
			_, streamed := g.post(t, "/v1/responses", request)
			events := eventsOf(t, streamed)
			final := decode[shownResponse](t, string(events[len(events)-1].Response))
			checkLifecycle(t, events, final)
			shown := decode[mcpOutput](t, string(events[len(events)-1].Response))
			if shown.types() != c.types || s.calls.Load() != c.calls {
				t.Errorf("the response has %s after %d calls", shown.types(), s.calls.Load())
			}
			<-u.requests
			if sent := (<-u.requests).body; !strings.Contains(sent, c.sent) {
				t.Errorf("the model was sent %s", sent)
			}
			if got := g.get(t, "/v1/responses/"+final.ID); got.body != string(events[len(events)-1].Response)+"\n" {
				t.Errorf("retrieved\n%s\nstreamed\n%s", got.body, events[len(events)-1].Response)
			}
			if got := g.get(t, "/v1/responses/"+final.ID+"?stream=true"); got.body != streamed {
				t.Errorf("replayed\n%s\nwant\n%s", got.body, streamed)
			}
			if c.whole {
				return
			}
			request = fmt.Sprintf(`{"model":"gpt","tools":%s,"conversation":%q,"input":[%s]}`, tools, conversationOf(final.ID), answer)
			if response, body := g.post(t, "/v1/responses", request); response.StatusCode != http.StatusBadRequest || s.calls.Load() != c.calls {
				t.Errorf("the second answer to a question got %d %s after %d calls", response.StatusCode, body, s.calls.Load())
			}
		})
	}
}

// Calls of the client's own functions and of an MCP server can be in one answer: the server's runs, and the turn ends with
// the client's.
func TestToolsOfTheClientAndOfMCPServersInOneTurn(t *testing.T) {
	s := newToolServer(t)
	u := newUpstream(t, stream(chatCalls("look", `{}`, "ours_echo", `{"text":"a"}`)), stream(chatStream))
	g := newMCPGateway(t, u, s)
	tools := `[{"type":"function","name":"look","parameters":{"type":"object"}},` + mcpTool(s, `,"require_approval":"never"`) + `]`
	_, streamed := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","stream":true,"tools":`+tools+`}`)
	events := eventsOf(t, streamed)
	first := decode[mcpOutput](t, string(events[len(events)-1].Response))
	checkLifecycle(t, events, decode[shownResponse](t, string(events[len(events)-1].Response)))
	if first.types() != "mcp_list_tools function_call mcp_call" || *first.Output[2].Output != "echo: a" {
		t.Fatalf("the response is %+v", first)
	}
	_, body := g.post(t, "/v1/responses", fmt.Sprintf(`{"model":"gpt","tools":%s,"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":"call_0","output":"seen"}]}`, tools, first.ID))
	if second := decode[mcpOutput](t, body); second.types() != "message" {
		t.Errorf("the second response is %s", body)
	}
	<-u.requests
	if sent := (<-u.requests).body; !strings.Contains(sent, "seen") || !strings.Contains(sent, "echo: a") {
		t.Errorf("the model was sent %s", sent)
	}
}

// Only addresses that the settings allow, and servers of the settings by their names, can be servers of a request; each
// refusal says which member it is about.
func TestMCPServersThatAreRefused(t *testing.T) {
	s := newToolServer(t)
	u := newUpstream(t)
	g := newMCPGateway(t, u, s)
	host := strings.TrimPrefix(s.URL, "http://")
	for name, c := range map[string]struct{ tool, param string }{
		"another address":   {`{"type":"mcp","server_label":"x","server_url":"http://169.254.169.254/mcp"}`, "server_url"},
		"another path":      {fmt.Sprintf(`{"type":"mcp","server_label":"x","server_url":"http://%s/mcpx"}`, host), "server_url"},
		"upwards":           {fmt.Sprintf(`{"type":"mcp","server_label":"x","server_url":"http://%s/mcp/../admin"}`, host), "server_url"},
		"upwards, escaped":  {fmt.Sprintf(`{"type":"mcp","server_label":"x","server_url":"http://%s/mcp/%%2e%%2e/admin"}`, host), "server_url"},
		"with a user":       {fmt.Sprintf(`{"type":"mcp","server_label":"x","server_url":"http://a@%s/mcp"}`, host), "server_url"},
		"another scheme":    {fmt.Sprintf(`{"type":"mcp","server_label":"x","server_url":"https://%s/mcp"}`, host), "server_url"},
		"no address":        {`{"type":"mcp","server_label":"x"}`, "server_label"},
		"no label":          {mcpTool(s, `,"server_label":""`), "server_label"},
		"a connector":       {`{"type":"mcp","server_label":"x","connector_id":"connector_gmail"}`, "connector_id"},
		"an approval":       {mcpTool(s, `,"require_approval":"sometimes"`), "require_approval"},
		"a list of numbers": {mcpTool(s, `,"allowed_tools":[1]`), "allowed_tools"},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","tools":[`+c.tool+`]}`)
			refused := decode[struct{ Error struct{ Param string } }](t, body)
			if response.StatusCode != http.StatusBadRequest || refused.Error.Param != "tools[0]."+c.param {
				t.Errorf("got %d %s", response.StatusCode, body)
			}
		})
	}
	gone := &toolServer{Server: &httptest.Server{URL: "http://127.0.0.1:1"}} // no program has this port
	response, body := newMCPGateway(t, u, gone).post(t, "/v1/responses", `{"model":"gpt","input":"hi","tools":[`+mcpTool(gone, "")+`]}`)
	if response.StatusCode != http.StatusFailedDependency || strings.Contains(body, "http://") {
		t.Errorf("a server that cannot be reached: got %d %s", response.StatusCode, body)
	}
}

// A server of the settings is named by its label alone; the policy of the settings decides which of its tools are offered,
// and which of them need an approval.
func TestMCPServersOfTheSettings(t *testing.T) {
	s := newToolServer(t)
	source, err := mcptool.Connect(t.Context(), mcptool.Options{Name: "disk", URL: s.URL + "/mcp"})
	if err != nil || source.Err() != nil {
		t.Fatal(err, source.Err())
	}
	t.Cleanup(func() { _ = source.Close() })
	u := newUpstream(t, stream(chatCalls("disk_echo", `{"text":"a"}`)), stream(chatCalls("disk_erase", `{"text":"a"}`)))
	g := newGatewayWith(t, u, storetest.NewMemory(), gateway.Options{MCP: gateway.MCP{
		Servers: []*mcptool.Source{source}, Policy: tool.Policy{Allow: []string{"disk.echo"}, Deny: []string{"disk.fail"}},
	}})
	_, body := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","tools":[{"type":"mcp","server_label":"disk","require_approval":"never"}]}`)
	if shown := decode[mcpOutput](t, body); shown.types() != "mcp_list_tools mcp_call mcp_approval_request" || s.calls.Load() != 1 {
		t.Errorf("the response is %s, after %d calls", body, s.calls.Load())
	}
	if sent := (<-u.requests).body; strings.Contains(sent, "disk_fail") {
		t.Errorf("a denied tool is offered: %s", sent)
	}
}

// The log of a turn with calls of MCP servers is that of any turn with tools, so that every other endpoint can continue it.
func TestMCPCallsInTheLog(t *testing.T) {
	s := newToolServer(t)
	u := newUpstream(t, stream(chatCalls("ours_echo", `{"text":"a"}`)), stream(chatStream))
	g := newMCPGateway(t, u, s)
	response, _ := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","tools":[`+mcpTool(s, `,"require_approval":"never"`)+`]}`)
	var roles []continuo.Role
	for _, entry := range g.entries(t, response) {
		roles = append(roles, entry.Role)
	}
	if !slices.Equal(roles, []continuo.Role{continuo.User, continuo.Assistant, continuo.Tool, continuo.Assistant}) {
		t.Errorf("the log has %v", roles)
	}
}

// An approval is of no use without its call, or a second time in the same request.
func TestApprovalsWithoutTheirCall(t *testing.T) {
	s := newToolServer(t)
	g := newMCPGateway(t, newUpstream(t, stream(chatCalls("ours_erase", `{"text":"b"}`)), stream(chatStream), stream(chatStream)), s)
	tools := `[` + mcpTool(s, "") + `]`
	_, body := g.post(t, "/v1/responses", `{"model":"gpt","input":"hi","tools":`+tools+`}`)
	asked := decode[mcpOutput](t, body)
	answer := fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}`, asked.Output[1].ID)
	for name, request := range map[string]string{
		"in another conversation": `"input":[` + answer + `]`,
		"after a message":         `"input":[{"role":"user","content":"go on"},` + answer + `]`,
		"twice":                   fmt.Sprintf(`"previous_response_id":%q,"input":[%s,%s]`, asked.ID, answer, answer),
	} {
		t.Run(name, func(t *testing.T) {
			response, body := g.post(t, "/v1/responses", `{"model":"gpt","tools":`+tools+`,`+request+`}`)
			if response.StatusCode != http.StatusBadRequest || s.calls.Load() != 0 {
				t.Errorf("%d %s after %d calls", response.StatusCode, body, s.calls.Load())
			}
		})
	}
}
