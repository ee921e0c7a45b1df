package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The endpoint for clients of chat completions works before models of responses and Gemini, with tools that the client
// runs.
func TestEndpointsBeforeTheNewProtocols(t *testing.T) {
	t.Parallel()
	responseStream := responseStart + `data: {"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":` + reasoningItem + "}\n\n" +
		`data: {"type":"response.output_item.done","sequence_number":2,"output_index":1,"item":` + callItem + "}\n\n" +
		`data: {"type":"response.completed","sequence_number":3,"response":{"id":"r","status":"completed","model":"m","output":[]}}` + "\n\n"
	geminiStream := `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[` + signedPart + `]},"finishReason":"STOP"}]}` + "\n\n"
	for _, protocol := range []struct{ name, answer, want string }{
		{"responses", responseStream, `"type":"function_call_output","call_id":"call_1"`},
		{"gemini", geminiStream, `"functionResponse":{`},
	} {
		for _, stream := range []string{"true", "false"} {
			t.Run(protocol.name+" "+stream, func(t *testing.T) {
				t.Parallel()
				id := map[string]string{"responses": "call_1", "gemini": "fc-1"}[protocol.name]
				last := map[string]string{"responses": responseText + responseEnd, "gemini": geminiText + geminiEnd}[protocol.name]
				upstream := &recorder{answers: []string{protocol.answer, last}}
				server := httptest.NewServer(upstream)
				defer server.Close()
				s := serve(t, "model: m\nmodels:\n"+modelSettings("m", protocol.name, server.URL)+turnSettings("retries: 0"))
				tools := `"tools":[{"type":"function","function":{"name":"fs_list","parameters":{"type":"object"}}}]`
				asked := `{"role":"user","content":"What is there?"}`
				first := post(t, s.url+"/v1/chat/completions", `{"model":"m","stream":`+stream+`,`+tools+`,"messages":[`+asked+`]}`)
				if !strings.Contains(first, `"`+id+`"`) || !strings.Contains(first, "tool_calls") {
					t.Fatalf("the first answer is %s", first)
				}
				history := asked + `,{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"fs_list","arguments":"{\"path\": \"@state\"}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"empty"}`
				second := post(t, s.url+"/v1/chat/completions", `{"model":"m","stream":`+stream+`,`+tools+`,"messages":[`+history+`]}`)
				if !strings.Contains(second, "part one") {
					t.Fatalf("the second answer is %s", second)
				}
				if n := len(upstream.requests); n != 2 || !strings.Contains(upstream.requests[1], protocol.want) {
					t.Errorf("%d requests, the last one %s", n, upstream.requests[n-1])
				}
			})
		}
	}
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body)) //nolint:noctx // the server ends it
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
