package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/breaker"
	"github.com/continuo-log/continuo/store/storetest"
)

// Faults that users of other gateways reported, each as a test.

// Requests that the upstream refuses are their client's fault: however many there are, they lock nobody out.
func TestRefusedRequestsDoNotOpenTheBreaker(t *testing.T) {
	refusals := []int{400, 401, 403, 404, 413, 422, 429}
	status := 0
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		v, streamed := vendorOf(r, asked)
		w.Header().Set("Content-Type", "application/json")
		if status != 0 {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, v.refusals[0].body)
			return
		}
		if streamed {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, v.head+v.more+v.end)
			return
		}
		_, _ = io.WriteString(w, v.whole)
	}))
	t.Cleanup(upstream.Close)
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	models := vendorModels(upstream.URL, nil)
	for name, guarded := range models {
		guarded.Model = breaker.New(guarded.Model, breaker.Options{Failures: 2})
		models[name] = guarded
	}
	e, err := engine.New(log, engine.Options{Models: models, Default: model.ProtocolOpenAIChat}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &testGateway{log: log, Server: httptest.NewServer(gateway.New(e, log, store, gateway.Options{}).Handler(continuo.Scope{ProjectID: continuo.DefaultProject}))}
	t.Cleanup(func() {
		g.Close()
		_ = e.Close(context.Background())
	})
	eachCase(t, nil, func(t *testing.T, _ *clientEndpoint, _ *vendor, _ bool, path, body string) {
		for _, status = range refusals {
			if response, _ := g.post(t, path, body); response.StatusCode < 400 {
				t.Errorf("%d: got %d", status, response.StatusCode)
			}
		}
		status = 0
		if response, got := g.post(t, path, body); response.StatusCode != http.StatusOK || !strings.Contains(got, firstWords) {
			t.Errorf("then got %d %s", response.StatusCode, got)
		}
	})
}

// The arguments of calls are those that the model gave: an input that is empty until its pieces arrive, one that comes
// whole, and none at all. They are the same in every endpoint's form, streamed and whole, and in the log.
func TestArgumentsAreJoinedAsTheyCame(t *testing.T) {
	block := func(index int, start string, pieces ...string) string {
		events := named(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"toolu_%d","name":"look","input":%s}}`, index, index, start))
		for _, piece := range pieces {
			quoted, _ := json.Marshal(piece)
			events += named(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, index, quoted))
		}
		return events + named(fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
	}
	answer := named(`{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}`) +
		block(0, `{}`, ``, `{"a`, `t": 1`, `.0}`) + block(1, `{"at":2}`) + block(2, `{}`, ``) +
		named(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`) + named(`{"type":"message_stop"}`)
	want := []string{`{"at": 1.0}`, `{"at":2}`, `{}`}
	for _, e := range clientEndpoints {
		for _, streamed := range []bool{true, false} {
			if !streamed && e.protocol == model.ProtocolAnthropic {
				continue // the answer is not streamed
			}
			t.Run(fmt.Sprintf("%s, streamed %v", e.name, streamed), func(t *testing.T) {
				g := newVendorsGateway(t, newUpstream(t, stream(answer)).URL)
				path, body := e.request(model.ProtocolAnthropic, streamed)
				response, got := g.post(t, path, body)
				if calls := e.argumentsOf(t, got, streamed); !slices.EqualFunc(calls, want, sameJSON) {
					t.Errorf("the client got the arguments %q, want %q, in %s", calls, want, got)
				}
				entries := g.entries(t, response)
				for i, call := range entries[len(entries)-1].ToolCalls {
					if call.Arguments != want[i] {
						t.Errorf("the log has the arguments %s, want %s", call.Arguments, want[i])
					}
				}
			})
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// argumentsOf are the arguments of an answer's calls as a client of the endpoint joins them.
func (e *clientEndpoint) argumentsOf(t *testing.T, wire string, streamed bool) []string {
	t.Helper()
	calls := map[int]string{}
	most := -1
	add := func(index int, piece string) {
		calls[index] += piece
		most = max(most, index)
	}
	values := []string{wire}
	if streamed {
		values = nil
		for line := range strings.Lines(wire) {
			if value, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data: "); ok && value != "[DONE]" {
				values = append(values, value)
			}
		}
	}
	next := 0
	for _, value := range values {
		var answer struct {
			Type    string
			Index   int
			Choices []struct {
				Delta, Message struct {
					ToolCalls []struct {
						Index    *int
						Function struct{ Arguments string }
					} `json:"tool_calls"`
				}
			}
			OutputIndex  int `json:"output_index"`
			Delta        json.RawMessage
			Content      []struct{ Input json.RawMessage }
			ContentBlock struct{ Input json.RawMessage } `json:"content_block"`
			Output       []struct{ Type, Arguments string }
			Candidates   []struct {
				Content struct {
					Parts []struct {
						FunctionCall *struct{ Args json.RawMessage }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(value), &answer); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		for _, choice := range answer.Choices {
			for _, call := range append(choice.Delta.ToolCalls, choice.Message.ToolCalls...) {
				if call.Index == nil {
					call.Index = &next
					add(next, call.Function.Arguments)
					next++
					continue
				}
				add(*call.Index, call.Function.Arguments)
			}
		}
		for _, candidate := range answer.Candidates {
			for _, part := range candidate.Content.Parts {
				if part.FunctionCall != nil {
					add(next, string(part.FunctionCall.Args))
					next++
				}
			}
		}
		for i, item := range answer.Output {
			add(i, item.Arguments)
		}
		for i, block := range answer.Content {
			add(i, string(block.Input))
		}
		switch answer.Type {
		case "response.function_call_arguments.delta":
			var piece string
			_ = json.Unmarshal(answer.Delta, &piece)
			add(answer.OutputIndex, piece)
		case "content_block_start":
			if start := string(answer.ContentBlock.Input); start != "{}" {
				add(answer.Index, start)
			}
			add(answer.Index, "")
		case "content_block_delta":
			var piece struct {
				PartialJSON string `json:"partial_json"`
			}
			_ = json.Unmarshal(answer.Delta, &piece)
			add(answer.Index, piece.PartialJSON)
		}
	}
	var all []string
	for i := range most + 1 {
		if calls[i] == "" {
			calls[i] = "{}" // as clients read no arguments
		}
		all = append(all, calls[i])
	}
	return all
}

// A client continues after an answer that broke off: it sends the half that it got, with or without a message after it, or
// leaves it out, or the server has it. In each case the model sees it as the client does, and the log has it once.
func TestAnAnswerThatBrokeOffIsContinued(t *testing.T) {
	const part = `{"role":"assistant","content":"part one "}`
	for name, test := range map[string]struct {
		path, request, header string
		want                  []string // what the log has at the end
		shown                 []string // to the model, of the words that may be
	}{
		"with the half and a message": {
			"/v1/chat/completions", `{"model":"openai-chat","stream":true,"messages":[{"role":"user","content":"hi"},` + part + `,{"role":"user","content":"go on"}]}`, "",
			[]string{"hi", "part one ", "go on", allWords},
			[]string{"hi", "part one", "go on"},
		},
		"without the half": {
			"/v1/chat/completions", `{"model":"openai-chat","stream":true,"messages":[{"role":"user","content":"hi"},{"role":"user","content":"go on"}]}`, "",
			[]string{"hi", "part one ", "go on", allWords},
			[]string{"hi", "go on"},
		},
		"the same request again": {
			"/v1/chat/completions", `{"model":"openai-chat","stream":true,"messages":[{"role":"user","content":"hi"}]}`, "",
			[]string{"hi", "part one ", allWords},
			[]string{"hi"},
		},
		"by its name": {
			"/v1/chat/completions", `{"model":"openai-chat","stream":true,"messages":[{"role":"user","content":"go on"}]}`, "X-Conversation-ID",
			[]string{"hi", "part one ", "go on", allWords},
			[]string{"hi", "part one", "go on"},
		},
		"through Responses": {
			"/v1/responses", `{"model":"openai-chat","stream":true,"input":"go on","conversation":"broken"}`, "",
			[]string{"hi", "part one ", "go on", allWords},
			[]string{"hi", "part one", "go on"},
		},
	} {
		for _, v := range vendors {
			t.Run(name+", "+v.protocol, func(t *testing.T) {
				u := newUpstream(t, stream(v.head), stream(v.head+v.more+v.end))
				g := newVendorsGateway(t, u.URL)
				var header []string
				if test.header != "" || strings.Contains(test.request, "broken") {
					header = []string{"X-Conversation-ID", "broken"}
				}
				first, _ := g.post(t, "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, v.protocol), header...)
				<-u.requests
				if test.header == "" {
					header = nil
				}
				response, got := g.post(t, test.path, strings.Replace(test.request, "openai-chat", v.protocol, 1), header...)
				if response.StatusCode != http.StatusOK || !strings.Contains(got, lastWords) {
					t.Fatalf("got %d %s", response.StatusCode, got)
				}
				var texts []string
				for _, entry := range g.entries(t, response) {
					texts = append(texts, entry.Content.String())
				}
				if !slices.Equal(texts, test.want) || response.Header.Get("X-Conversation-ID") != first.Header.Get("X-Conversation-ID") {
					t.Errorf("the log has %q, want %q; the conversation is %s, was %s", texts, test.want, response.Header.Get("X-Conversation-ID"), first.Header.Get("X-Conversation-ID"))
				}
				sent := (<-u.requests).body
				for _, text := range []string{"hi", "part one", "go on"} {
					if strings.Contains(sent, `"`+text) != slices.Contains(test.shown, text) {
						t.Errorf("%q is shown to the model: %v, in %s", text, !slices.Contains(test.shown, text), sent)
					}
				}
			})
		}
	}
}

// A response that broke off is continued by its id, and replayed with the same end as often as somebody asks.
func TestAResponseThatBrokeOffIsContinued(t *testing.T) {
	u := newUpstream(t, stream(vendors[0].head), stream(chatStream))
	g := newVendorsGateway(t, u.URL)
	_, streamed := g.post(t, "/v1/responses", `{"model":"openai-chat","stream":true,"input":"hi"}`)
	<-u.requests
	events := eventsOf(t, streamed)
	failed := decode[shownResponse](t, string(events[len(events)-1].Response))
	if events[len(events)-1].Type != "response.failed" || failed.Status != "failed" || len(failed.Output) != 1 || failed.Output[0].Content[0].Text != firstWords {
		t.Fatalf("the response ends with %+v", failed)
	}
	if got := g.get(t, "/v1/responses/"+failed.ID+"?stream=true"); got.body != streamed {
		t.Errorf("replayed\n%s\nwant\n%s", got.body, streamed)
	}
	response, got := g.post(t, "/v1/responses", fmt.Sprintf(`{"model":"openai-chat","input":"go on","previous_response_id":%q}`, failed.ID))
	if response.StatusCode != http.StatusOK || !strings.Contains(got, "Gott") {
		t.Fatalf("got %d %s", response.StatusCode, got)
	}
	if sent := (<-u.requests).body; !strings.Contains(sent, firstWords) || !strings.Contains(sent, "go on") {
		t.Errorf("the upstream got %s", sent)
	}
}

// What agents were recorded to send and is unusual: system messages among the others, with a cache mark, as a text, and
// empty. They reach an upstream of the same protocol as they came, and one of another protocol in its form.
func TestSystemMessagesAmongTheOthers(t *testing.T) {
	messages := `[{"role":"user","content":"hi"},{"role":"system","content":[{"type":"text","text":"Note one.","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"assistant","content":"Yes?"},{"role":"system","content":"Note two."},{"role":"system","content":""},{"role":"user","content":"now"}]`
	for _, v := range vendors {
		t.Run(v.protocol, func(t *testing.T) {
			u := newUpstream(t, stream(v.head+v.more+v.end))
			g := newVendorsGateway(t, u.URL)
			request := fmt.Sprintf(`{"model":%q,"max_tokens":9,"stream":true,"messages":%s}`, v.protocol, messages)
			response, got := g.post(t, "/v1/messages", request)
			if response.StatusCode != http.StatusOK || !strings.Contains(got, firstWords) {
				t.Fatalf("got %d %s", response.StatusCode, got)
			}
			sent := (<-u.requests).body
			if v.protocol == model.ProtocolAnthropic && sent != strings.Replace(request, `"anthropic-messages"`, `"m"`, 1) {
				t.Errorf("the upstream got %s", sent)
			}
			for _, text := range []string{"hi", "Note one.", "Yes?", "Note two.", "now"} {
				if strings.Count(sent, text) != 1 {
					t.Errorf("%q is sent %d times in %s", text, strings.Count(sent, text), sent)
				}
			}
		})
	}
}

// Clients ask for the models in their own vendor's form, and refuse names that they do not find: those that upstreams
// serve are found too.
func TestModelsAreShownInTheClientsForm(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	for _, test := range []struct{ path, version, want string }{
		{"/v1/models", "", `{"data":[{"id":"gpt","object":"model"`},
		{"/v1/models?limit=1000", "2023-06-01", `{"data":[{"type":"model","id":"gpt","display_name":"gpt","created_at":"1970-01-01T00:00:00Z"}`},
		{"/v1/models", "", `{"id":"served-x","object":"model"`},
		{"/v1/models", "2023-06-01", `"last_id":"served-x"`},
		{"/v1beta/models", "", `"name":"models/served-x"`},
		{"/v1/models/claude", "2023-06-01", `{"type":"model","id":"claude"`},
		{"/v1/models/served-x", "2023-06-01", `{"type":"model","id":"served-x"`},
		{"/v1/models/served-x", "", `{"id":"served-x","object":"model"`},
		{"/v1/models/nope", "2023-06-01", `{"type":"error","error":{"type":"not_found_error"`},
		{"/v1/models/nope", "", `"code":"model_not_found"`},
		{"/v1beta/models/served-x", "", `"name":"models/served-x"`},
		{"/v1beta/models/nope", "", `"status":"NOT_FOUND"`},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+test.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if test.version != "" {
			request.Header.Set("Anthropic-Version", test.version)
		}
		response, err := g.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if strings.Contains(string(body), "not-served") {
			t.Errorf("%s: a name that nobody serves is listed: %s", test.path, body)
		}
		if !strings.Contains(string(body), test.want) || (response.StatusCode == http.StatusOK) == strings.Contains(test.path, "nope") {
			t.Errorf("%s: got %d %s, want %s", test.path, response.StatusCode, body, test.want)
		}
	}
}
