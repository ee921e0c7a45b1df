package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// checkErrorForm fails unless an answer is an error in the form of an API.
func checkErrorForm(t *testing.T, protocol string, status int, body string) {
	t.Helper()
	object, err := rawjson.ParseObject([]byte(body))
	if err != nil {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	inner, err := rawjson.ParseObject(object.Get("error"))
	if err != nil {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	members := map[string]string{"openai": "message type param code", "anthropic": "type message", "gemini": "code message status"}[protocol]
	for _, name := range strings.Fields(members) {
		if inner.Get(name) == nil {
			t.Errorf("%d %s: error has no %s", status, body, name)
		}
	}
	if text, _ := rawjson.String(inner.Get("message")); text == "" {
		t.Errorf("%d %s: there is no message", status, body)
	}
	switch protocol {
	case "anthropic":
		if kind, _ := rawjson.String(object.Get("type")); kind != "error" {
			t.Errorf("%d %s: the type is not error", status, body)
		}
	case "gemini":
		code := 0
		if json.Unmarshal(inner.Get("code"), &code) != nil || code != status {
			t.Errorf("%d %s: the code is not the status", status, body)
		}
	}
}

// malformed are requests that each API refuses; MODEL stands for a model of another protocol, since a request that is
// forwarded is the upstream's to refuse.
var malformed = []struct {
	protocol, path string
	bodies         map[string]string
}{
	{"openai", "/v1/chat/completions", map[string]string{
		"no JSON": "{", "no object": "[]", "nothing": "{}", "no messages": `{"model":"MODEL"}`, "messages of another type": `{"model":"MODEL","messages":"x"}`,
		"no message": `{"model":"MODEL","messages":[]}`, "a message of another type": `{"model":"MODEL","messages":[7]}`, "no model": `{"messages":[{"role":"user","content":"x"}]}`,
		"a model of another type": `{"model":7,"messages":[{"role":"user","content":"x"}]}`, "an unknown role": `{"model":"MODEL","messages":[{"role":"narrator","content":"x"}]}`,
		"a result without a call":  `{"model":"MODEL","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c","content":"y"}]}`,
		"tools of another type":    `{"model":"MODEL","tools":"f","messages":[{"role":"user","content":"x"}]}`,
		"a tool without a name":    `{"model":"MODEL","tools":[{"type":"function","function":{}}],"messages":[{"role":"user","content":"x"}]}`,
		"temperature":              `{"model":"MODEL","temperature":"hot","messages":[{"role":"user","content":"x"}]}`,
		"top_p":                    `{"model":"MODEL","top_p":"x","messages":[{"role":"user","content":"x"}]}`,
		"stop":                     `{"model":"MODEL","stop":7,"messages":[{"role":"user","content":"x"}]}`,
		"a choice of tools":        `{"model":"MODEL","tool_choice":"sometimes","messages":[{"role":"user","content":"x"}]}`,
		"a schema that is missing": `{"model":"MODEL","response_format":{"type":"json_schema"},"messages":[{"role":"user","content":"x"}]}`,
	}},
	{"openai", "/v1/responses", map[string]string{
		"no JSON": "{", "no object": "[]", "nothing": "{}", "input of another type": `{"model":"MODEL","input":7}`, "an item of another type": `{"model":"MODEL","input":[7]}`,
		"a result without a call": `{"model":"MODEL","input":[{"type":"function_call_output","call_id":"c","output":"y"}]}`,
		"both links":              `{"model":"MODEL","input":"x","conversation":"c","previous_response_id":"r"}`,
		"an unknown response":     `{"model":"MODEL","input":"x","previous_response_id":"resp_1"}`,
		"reasoning":               `{"model":"MODEL","input":"x","reasoning":{"effort":"much"}}`, "a choice of tools": `{"model":"MODEL","input":"x","tool_choice":7}`,
		"temperature": `{"model":"MODEL","input":"x","temperature":"hot"}`,
	}},
	{"anthropic", "/v1/messages", map[string]string{
		"no JSON": "{", "no object": "[]", "nothing": "{}", "no messages": `{"model":"MODEL","max_tokens":9}`, "messages of another type": `{"model":"MODEL","max_tokens":9,"messages":7}`,
		"an unknown role":         `{"model":"MODEL","max_tokens":9,"messages":[{"role":"narrator","content":"x"}]}`,
		"a result without a call": `{"model":"MODEL","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"y"}]}]}`,
		"thinking":                `{"model":"MODEL","max_tokens":9,"thinking":{"type":"deep"},"messages":[{"role":"user","content":"x"}]}`,
		"a choice of tools":       `{"model":"MODEL","max_tokens":9,"tool_choice":"auto","messages":[{"role":"user","content":"x"}]}`,
		"max_tokens":              `{"model":"MODEL","max_tokens":"many","messages":[{"role":"user","content":"x"}]}`,
		"system":                  `{"model":"MODEL","max_tokens":9,"system":7,"messages":[{"role":"user","content":"x"}]}`,
	}},
	{"gemini", "/v1beta/models/MODEL:generateContent", map[string]string{
		"no JSON": "{", "no object": "[]", "nothing": "{}", "contents of another type": `{"contents":7}`, "a content of another type": `{"contents":[7]}`,
		"an unknown role":         `{"contents":[{"role":"narrator","parts":[{"text":"x"}]}]}`,
		"a result without a call": `{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`,
		"temperature":             `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"temperature":"hot"}}`,
		"a choice of tools":       `{"contents":[{"parts":[{"text":"x"}]}],"toolConfig":{"functionCallingConfig":{"mode":"SOMETIMES"}}}`,
	}},
}

func TestMalformedRequests(t *testing.T) {
	for _, endpoint := range malformed {
		t.Run(endpoint.path, func(t *testing.T) {
			g := newGateway(t, newUpstream(t))
			other := map[string]string{"openai": "claude", "anthropic": "gpt", "gemini": "gpt"}[endpoint.protocol]
			for name, body := range endpoint.bodies {
				response, got := g.post(t, strings.Replace(endpoint.path, "MODEL", other, 1), strings.Replace(body, "MODEL", other, 1))
				if response.StatusCode != http.StatusBadRequest {
					t.Errorf("%s: got %d %s", name, response.StatusCode, got)
				} else {
					checkErrorForm(t, endpoint.protocol, response.StatusCode, got)
				}
			}
		})
	}
}

// An error that is found before the gateway has the form of the API that was called.
func TestErrorsOfAuthentication(t *testing.T) {
	for path, want := range map[string]struct{ protocol, kind string }{
		"/v1/chat/completions": {"openai", `"type":"authentication_error"`}, "/v1/responses": {"openai", `"code":"missing_api_key"`},
		"/v1/messages": {"anthropic", `"type":"authentication_error"`}, "/v1/messages/count_tokens": {"anthropic", `"type":"authentication_error"`},
		"/v1beta/models/m:generateContent": {"gemini", `"status":"UNAUTHENTICATED"`}, "/v1beta/models": {"gemini", `"status":"UNAUTHENTICATED"`},
	} {
		recorder := httptest.NewRecorder()
		gateway.WriteError(recorder, httptest.NewRequest(http.MethodPost, path, nil), &api.Problem{
			Status: http.StatusUnauthorized, Type: api.Authentication, Code: "missing_api_key", Message: "this server wants an API key",
		})
		checkErrorForm(t, want.protocol, recorder.Code, recorder.Body.String())
		if recorder.Code != http.StatusUnauthorized || !strings.Contains(recorder.Body.String(), want.kind) {
			t.Errorf("%s: got %d %s", path, recorder.Code, recorder.Body)
		}
	}
}
