package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/anthropic"
	"github.com/continuo-log/continuo/model/gemini"
	"github.com/continuo-log/continuo/model/openai"
	"github.com/continuo-log/continuo/model/responses"
	"github.com/continuo-log/continuo/store/storetest"
)

// fieldUpstreams are the protocols of upstreams in the order of the columns of docs/gateway.md.
var fieldUpstreams = []string{"openai-chat", "openai-responses", "anthropic-messages", "gemini"}

// fieldEndpoints are the endpoints of docs/gateway.md, each with a request, which has a tool, and a value of every member
// that is read. Members within others have their objects around them.
var fieldEndpoints = []struct {
	name, protocol, path, request string
	values                        map[string]string
}{
	{
		"Chat completions", "openai-chat", "/v1/chat/completions",
		`{"model":"MODEL","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"function","function":{"name":"g"}}],"messages":[{"role":"user","content":"x"}]}`,
		map[string]string{
			"max_tokens": "2000", "max_completion_tokens": "2000", "temperature": "0.5", "top_p": "0.5", "top_k": "5", "stop": `["END"]`, "presence_penalty": "0.5",
			"frequency_penalty": "0.5", "seed": "7", "tool_choice": `{"type":"function","function":{"name":"f"}}`, "parallel_tool_calls": "false",
			"reasoning_effort": `"high"`, "response_format": `{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"},"strict":true}}`,
			"service_tier": `"default"`, "user": `"u"`, "safety_identifier": `"u"`, "prompt_cache_key": `"k"`, "verbosity": `"low"`, "n": "2", "logprobs": "true",
			"modalities": `["audio"]`, "logit_bias": `{"1":2}`,
		},
	},
	{
		"Responses", "openai-responses", "/v1/responses",
		`{"model":"MODEL","tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"function","name":"g","parameters":{"type":"object"}}],"input":"x"}`,
		map[string]string{
			"max_output_tokens": "2000", "temperature": "0.5", "top_p": "0.5", "tool_choice": `{"type":"function","name":"f"}`, "parallel_tool_calls": "false",
			"reasoning.effort": `"high"`, "text.format": `{"type":"json_schema","name":"a","schema":{"type":"object"}}`, "text.verbosity": `"low"`,
			"service_tier": `"default"`, "user": `"u"`, "safety_identifier": `"u"`, "prompt_cache_key": `"k"`, "top_logprobs": "2", "max_tool_calls": "3",
			"prompt": `{"id":"p"}`,
		},
	},
	{
		"Anthropic messages", "anthropic-messages", "/v1/messages",
		`{"model":"MODEL","max_tokens":9000,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"x"}]}`,
		map[string]string{
			"max_tokens": "2000", "temperature": "0.5", "top_p": "0.5", "top_k": "5", "stop_sequences": `["END"]`, "tool_choice": `{"type":"tool","name":"f"}`,
			"tool_choice.disable_parallel_tool_use": `true,"type":"auto"`,
			"thinking":                              `{"type":"enabled","budget_tokens":2048}`, "output_config.effort": `"high"`, "output_config.format": `{"type":"json_schema","schema":{"type":"object"}}`,
			"output_format": `{"type":"json_schema","schema":{"type":"object"}}`, "service_tier": `"standard_only"`, "metadata.user_id": `"u"`, "container": `"c"`, "mcp_servers": `[{"type":"url"}]`,
		},
	},
	{
		"Gemini", "gemini", "/v1beta/models/MODEL:generateContent",
		`{"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}},{"name":"g"}]}],"contents":[{"role":"user","parts":[{"text":"x"}]}]}`,
		map[string]string{
			"generationConfig.maxOutputTokens": "2000", "generationConfig.temperature": "0.5", "generationConfig.topP": "0.5", "generationConfig.topK": "5",
			"generationConfig.stopSequences": `["END"]`, "generationConfig.presencePenalty": "0.5", "generationConfig.frequencyPenalty": "0.5", "generationConfig.seed": "7",
			"generationConfig.responseMimeType": `"application/json"`, "generationConfig.responseSchema": `{"type":"OBJECT"}`, "generationConfig.responseJsonSchema": `{"type":"object"}`,
			"generationConfig.thinkingConfig.thinkingBudget": "2048", "generationConfig.thinkingConfig.thinkingLevel": `"HIGH"`, "toolConfig.functionCallingConfig": `{"mode":"ANY","allowedFunctionNames":["f"]}`,
			"generationConfig.candidateCount": "2", "generationConfig.responseModalities": `["IMAGE"]`, "safetySettings": `[{"category":"x"}]`, "cachedContent": `"c"`,
		},
	},
}

// newFieldGateway makes a gateway before an upstream of each protocol, all of them in one server that refuses.
func newFieldGateway(t *testing.T, u *httptest.Server, options gateway.Options) *testGateway {
	speaker := func() *model.Speaker {
		return model.NewSpeaker(model.Dialect{Structured: model.StructuredSchema, StructuredWithTools: true}, model.Fixed{})
	}
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	e, err := engine.New(log, engine.Options{Default: "openai-chat", Models: map[string]engine.Upstream{
		"openai-chat":        {Speaker: speaker(), Model: openai.New(openai.Options{BaseURL: u.URL, Name: "m"})},
		"openai-responses":   {Speaker: speaker(), Model: responses.New(responses.Options{BaseURL: u.URL, Name: "m"})},
		"anthropic-messages": {Speaker: speaker(), Model: anthropic.New(anthropic.Options{BaseURL: u.URL, Name: "m"})},
		"gemini":             {Speaker: speaker(), Model: gemini.New(gemini.Options{BaseURL: u.URL, Name: "m"})},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &testGateway{log: log, Server: httptest.NewServer(gateway.New(e, log, store, options).Handler(continuo.Scope{ProjectID: continuo.DefaultProject}))}
	t.Cleanup(func() {
		g.Close()
		_ = e.Close(context.Background())
	})
	return g
}

// refusingUpstream refuses every request, and keeps the newest one's body.
func refusingUpstream(t *testing.T) (server *httptest.Server, newest func() string) {
	u := newUpstream(t)
	refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"message":"not today"}}`))
	})
	server = httptest.NewServer(refuse)
	t.Cleanup(server.Close)
	return server, func() string { return (<-u.requests).body }
}

// The tables of members in docs/gateway.md say what becomes of each member at each upstream: where it is in the request,
// or that it is named in the header and in the round.
func TestMembersAcrossProtocols(t *testing.T) {
	documented, err := os.ReadFile(filepath.Join("..", "docs", "gateway.md"))
	if err != nil {
		t.Fatal(err)
	}
	u, newest := refusingUpstream(t)
	g := newFieldGateway(t, u, gateway.Options{})
	for _, endpoint := range fieldEndpoints {
		t.Run(endpoint.name, func(t *testing.T) {
			var rows []string
			before := map[string]map[string]string{}
			for _, protocol := range fieldUpstreams {
				_, _ = g.post(t, strings.Replace(endpoint.path, "MODEL", protocol, 1), strings.Replace(endpoint.request, "MODEL", protocol, 1))
				before[protocol] = paths(t, newest())
			}
			members := slices.Sorted(maps.Keys(endpoint.values))
			for _, member := range members {
				row := fmt.Sprintf("| `%s` |", member)
				for _, protocol := range fieldUpstreams {
					if protocol == endpoint.protocol {
						row += " as it came |"
						continue
					}
					body := strings.Replace(endpoint.request, "MODEL", protocol, 1)
					response, got := g.post(t, strings.Replace(endpoint.path, "MODEL", protocol, 1), withMember(t, body, member, endpoint.values[member]))
					omitted := response.Header.Get("X-Continuo-Omitted")
					if response.StatusCode != http.StatusBadRequest && response.StatusCode != http.StatusBadGateway {
						t.Fatalf("%s at %s: got %d %s", member, protocol, response.StatusCode, got)
					}
					sent := newest()
					entries := g.entries(t, response)
					round := entries[len(entries)-1].Round
					if omitted != "" && omitted != member {
						t.Errorf("%s at %s: the header names %q", member, protocol, omitted)
					}
					if strings.Join(round.Omitted, ", ") != omitted {
						t.Errorf("%s at %s: the round names %q, the header %q", member, protocol, round.Omitted, omitted)
					}
					g.checkReplay(t, &entries[len(entries)-1], sent)
					row += " " + cell(before[protocol], paths(t, sent), omitted, member) + " |"
				}
				rows = append(rows, row)
			}
			table := "| member | " + strings.Join(fieldUpstreams, " | ") + " |\n|---|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
			if !strings.Contains(string(documented), table) {
				t.Errorf("docs/gateway.md does not have this table:\n%s", table)
			}
		})
	}
}

// cell says what became of a member: where it is in the request, or that it is named.
func cell(before, after map[string]string, omitted, member string) string {
	var where []string
	for path, value := range after {
		if was, ok := before[path]; !ok || was != value {
			where = append(where, "`"+path+"`")
		}
	}
	slices.Sort(where)
	if len(where) > 1 { // a choice of tools goes with whether several may be called
		where = slices.DeleteFunc(where, func(path string) bool { return path == "`tool_choice`" })
	}
	if omitted != "" {
		where = append(where, "named")
	}
	if len(where) == 0 {
		return "lost"
	}
	return strings.Join(where, ", ")
}

// paths returns the members of a body, and of its objects that only group others.
func paths(t *testing.T, body string) map[string]string {
	t.Helper()
	found := map[string]string{}
	var walk func(within string, raw json.RawMessage)
	walk = func(within string, raw json.RawMessage) {
		object, err := rawjson.ParseObject(raw)
		if err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		for _, field := range object {
			name := within + field.Key
			if slices.Contains([]string{"generationConfig", "generationConfig.thinkingConfig", "toolConfig", "text", "reasoning", "metadata", "output_config", "tool_choice"}, name) && field.Value[0] == '{' {
				walk(name+".", field.Value)
				continue
			}
			if name == "tool_choice.type" || name == "tool_choice.name" || name == "tool_choice.function" {
				name = "tool_choice"
			}
			found[name] = string(field.Value)
		}
	}
	walk("", json.RawMessage(body))
	return found
}

// withMember sets a member of a body, by its path.
func withMember(t *testing.T, body, path, value string) string {
	t.Helper()
	object, err := rawjson.ParseObject([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(path, ".")
	for _, part := range slices.Backward(parts[1:]) {
		value = `{"` + part + `":` + value + `}`
	}
	object.Set(parts[0], json.RawMessage(value))
	return string(object.Raw())
}

// Where the server keeps the history and the protocols are the same, the request has the client's members and headers as
// they came, with the messages that the view shows.
func TestOwnMembersAreSentAsTheyCame(t *testing.T) {
	u := newUpstream(t, stream(chatStream), stream(chatStream), stream(messagesStream), stream(messagesStream))
	g := newFieldGateway(t, u.Server, gateway.Options{})
	for _, test := range []struct{ protocol, path, first, second, want string }{
		{
			"openai-chat", "/v1/chat/completions", `{"model":"openai-chat","messages":[{"role":"user","content":"one"}]}`,
			`{"model":"openai-chat","n":2,"logit_bias":{"7": 1},"max_tokens":5,"store":true,"metadata":{"a":"b"},"messages":[{"role":"user","content":"two"}],"tools":[{"type":"function","function":{"name":"f","strict":true}},{"type":"custom","custom":{"name":"c"}}],"tool_choice":{"type":"custom","custom":{"name":"c"}},"response_format":{"type":"json_object"}}`,
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"logit_bias":{"7":1},"max_tokens":5,"tools":[{"type":"function","function":{"name":"f","strict":true}},{"type":"custom","custom":{"name":"c"}}],` +
				`"tool_choice":{"type":"custom","custom":{"name":"c"}},"response_format":{"type":"json_object"},"messages":[{"role":"user","content":"one"},{"role":"assistant","content":"Grüß Gott"},{"role":"user","content":"two"}]}`,
		},
		{
			"anthropic-messages", "/v1/messages", `{"model":"anthropic-messages","max_tokens":9,"messages":[{"role":"user","content":"one"}]}`,
			`{"model":"anthropic-messages","max_tokens":9,"context_management":{"edits":[]},"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"two"}],"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}},{"type":"web_search_20250305","name":"web_search"}]}`,
			`{"model":"m","max_tokens":9,"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}},{"type":"web_search_20250305","name":"web_search"}],"thinking":{"type":"disabled"},` +
				`"messages":[{"role":"user","content":[{"type":"text","text":"one"}]},{"role":"assistant","content":[{"type":"text","text":"Grüß Gott"}]},{"role":"user","content":[{"type":"text","text":"two","cache_control":{"type":"ephemeral"}}]}]}`,
		},
	} {
		t.Run(test.protocol, func(t *testing.T) {
			response, got := g.post(t, test.path, test.first, "X-Conversation-ID", test.protocol)
			if response.StatusCode != http.StatusOK {
				t.Fatalf("got %d %s", response.StatusCode, got)
			}
			<-u.requests
			response, _ = g.post(t, test.path, test.second, "X-Conversation-ID", test.protocol, "Anthropic-Beta", "b1", "Accept", "application/json")
			sent := <-u.requests
			if sent.body != test.want {
				t.Errorf("the upstream got\n%s, want\n%s", sent.body, test.want)
			}
			if beta, accept := sent.header.Get("Anthropic-Beta"), sent.header.Get("Accept"); beta != "b1" || !strings.Contains(accept, "event-stream") {
				t.Errorf("the upstream got the headers %q, %q", beta, accept)
			}
			want := map[string]string{"openai-chat": "n", "anthropic-messages": "context_management"}[test.protocol]
			if omitted := response.Header.Get("X-Continuo-Omitted"); omitted != want {
				t.Errorf("named %q", omitted)
			}
			entries := g.entries(t, response)
			g.checkReplay(t, &entries[len(entries)-1], sent.body)
		})
	}
}
