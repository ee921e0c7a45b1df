package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/anthropic"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/openai"
	"github.com/continuo-log/continuo/model/responses"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// upstream is a provider that answers each request with the next of its answers.
type upstream struct {
	*httptest.Server
	answers  chan http.HandlerFunc
	requests chan received
}

// received is a request that reached the upstream.
type received struct {
	path   string
	header http.Header
	body   string
}

func newUpstream(t *testing.T, answers ...http.HandlerFunc) *upstream {
	u := &upstream{answers: make(chan http.HandlerFunc, len(answers)), requests: make(chan received, len(answers)+8)}
	for _, answer := range answers {
		u.answers <- answer
	}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.requests <- received{r.URL.RequestURI(), r.Header, string(body)}
		select {
		case answer := <-u.answers:
			answer(w, r)
		default:
			w.WriteHeader(http.StatusTeapot) // a request that the test does not expect
		}
	}))
	t.Cleanup(u.Close)
	return u
}

// stream answers with the bytes of a stream.
func stream(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Ratelimit-Remaining-Requests", "59")
		w.Header().Set("Set-Cookie", "session=upstream")
		_, _ = io.WriteString(w, body)
	}
}

// testGateway is a gateway before an upstream.
type testGateway struct {
	*httptest.Server
	log     *continuo.Log
	engine  *engine.Engine
	gateway *gateway.Gateway
}

func newGateway(t *testing.T, u *upstream) *testGateway {
	return newGatewayOver(t, u, storetest.NewMemory())
}

// prefixedStore is what a gateway needs of a store.
type prefixedStore interface {
	continuo.Store
	continuo.PrefixStore
}

func newGatewayOver(t *testing.T, u *upstream, store prefixedStore) *testGateway {
	return newGatewayWith(t, u, store, gateway.Options{})
}

func newGatewayWith(t *testing.T, u *upstream, store prefixedStore, options gateway.Options) *testGateway {
	log := continuo.NewLog(store, continuo.LogOptions{})
	e, err := engine.New(log, engine.Options{
		Models: map[string]engine.Upstream{
			"gpt":    {Model: openai.New(openai.Options{BaseURL: u.URL + "/v1", APIKey: "the-servers-key", Name: "gpt-4o-2024"})},
			"demo":   {Model: demo.New(demo.Options{})},
			"o4":     {Model: responses.New(responses.Options{BaseURL: u.URL + "/v1", APIKey: "the-servers-key", Name: "o4-2025"})},
			"claude": {Model: anthropic.New(anthropic.Options{BaseURL: u.URL, APIKey: "the-servers-key", Name: "claude-4"})},
		},
		Default: "gpt",
		Listed:  func(context.Context, http.Header) []string { return []string{"served-x", "not-served", "gpt"} },
		Serve: func(name, protocol string) (engine.Upstream, bool) {
			if !strings.HasPrefix(name, "served-") {
				return engine.Upstream{}, false
			}
			if protocol == model.ProtocolAnthropic {
				return engine.Upstream{Model: anthropic.New(anthropic.Options{BaseURL: u.URL, APIKey: "the-servers-key", Name: name}), ForwardCredentials: true}, true
			}
			return engine.Upstream{Model: openai.New(openai.Options{BaseURL: u.URL + "/v1", APIKey: "the-servers-key", Name: name}), ForwardCredentials: true}, true
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &testGateway{log: log, engine: e, gateway: gateway.New(e, log, store, options)}
	g.Server = httptest.NewServer(g.gateway.Handler(continuo.Scope{ProjectID: continuo.DefaultProject}))
	t.Cleanup(func() {
		g.Close()
		_ = e.Close(context.Background())
	})
	return g
}

// post sends a request with headers, given as pairs, and returns the answer with its body.
func (g *testGateway) post(t *testing.T, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := g.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(answer)
}

// entries reads the log of the conversation that an answer names.
func (g *testGateway) entries(t *testing.T, response *http.Response) []continuo.Entry {
	t.Helper()
	conversation, err := g.log.Conversation(t.Context(), response.Header.Get("X-Conversation-ID"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []continuo.Entry
	for entry, err := range g.log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	return entries
}

// Streams as the providers send them, with unusual white space, comments and unknown fields that must stay.
const (
	chatStream = ": keep-alive\n\n" +
		"data: {\"id\":\"c1\", \"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"x_unknown\": 1}]}\n\n" +
		"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüß\"}}]}\r\n\r\n" +
		"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" Gott\"}}]}\n\n" +
		"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
		"data: [DONE]\n\n"
	messagesStream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"role\":\"assistant\",\"content\":[],\"model\":\"claude-4\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Grüß Gott\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// endpoints are a request of each endpoint and the answer to it.
var endpoints = map[string]struct {
	path, request, sent, upstream, stream string
}{
	"chat completions": {
		path:     "/v1/chat/completions",
		request:  `{"messages": [ {"role":"system","content":"Be brief."}, {"role":"user","content":"héllo","x":1.0} ],"model" : "gpt", "stream":true,"unknown":{"b":1,"a":2}}`,
		sent:     `{"messages": [ {"role":"system","content":"Be brief."}, {"role":"user","content":"héllo","x":1.0} ],"model" : "gpt-4o-2024", "stream":true,"unknown":{"b":1,"a":2}}`,
		upstream: "/v1/chat/completions?beta=1", stream: chatStream,
	},
	"messages": {
		path:     "/v1/messages",
		request:  `{"model":"claude","max_tokens":10,"stream":true,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"héllo"}]}]}`,
		sent:     `{"model":"claude-4","max_tokens":10,"stream":true,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"héllo"}]}]}`,
		upstream: "/v1/messages?beta=1", stream: messagesStream,
	},
}

// What a client sends reaches the upstream as it came, but for the credentials and the name of the model; what the
// upstream answers reaches the client byte for byte; and the log has both, with a request that can be shown again.
func TestARequestIsForwardedAndRecorded(t *testing.T) {
	for name, test := range endpoints {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, stream(test.stream))
			g := newGateway(t, u)
			response, got := g.post(t, test.path+"?beta=1", test.request, "Authorization", "Bearer the-clients-key", "X-Api-Key", "the-clients-key",
				"Anthropic-Beta", "b1,b2", "User-Agent", "client/1.0", "X-Continuo-View", "client", "X-Conversation-ID", "trip")
			if got != test.stream {
				t.Errorf("the client got\n%q, want\n%q", got, test.stream)
			}
			for header, want := range map[string]string{
				"Content-Type": "text/event-stream", "X-Ratelimit-Remaining-Requests": "59", "Set-Cookie": "", "X-Continuo-Matched": "header",
			} {
				if got := response.Header.Get(header); got != want {
					t.Errorf("%s: got %q, want %q", header, got, want)
				}
			}
			request := <-u.requests
			if request.path != test.upstream || request.body != test.sent {
				t.Errorf("the upstream got %s\n%s, want %s\n%s", request.path, request.body, test.upstream, test.sent)
			}
			for header, want := range map[string]string{"Anthropic-Beta": "b1,b2", "User-Agent": "client/1.0", "X-Continuo-View": "", "X-Conversation-Id": ""} {
				if got := request.header.Get(header); got != want {
					t.Errorf("the upstream got %s: %q, want %q", header, got, want)
				}
			}
			if credentials := request.header.Get("Authorization") + request.header.Get("X-Api-Key"); !strings.HasSuffix(credentials, "the-servers-key") || strings.Contains(credentials, "clients") {
				t.Errorf("the upstream got the credentials %q", credentials)
			}
			entries := g.entries(t, response)
			if len(entries) != 2 || entries[0].Content.String() != "héllo" || entries[1].Content.String() != "Grüß Gott" || entries[1].Error != nil {
				t.Fatalf("the log has %+v", entries)
			}
			g.checkReplay(t, &entries[1], test.sent)
		})
	}
}

// checkReplay compares the request of an answer, as it is shown again, with the bytes that were sent.
func (g *testGateway) checkReplay(t *testing.T, answer *continuo.Entry, sent string) {
	t.Helper()
	conversation, err := g.log.Conversation(t.Context(), answer.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := turn.Replay(t.Context(), g.log, conversation, answer.Round, turn.ReadWindowView)
	if err != nil || !same || string(again.Body) != sent {
		t.Errorf("shown again: %v, same %v\n%s\nsent\n%s", err, same, again.Body, sent)
	}
}

// A refusal reaches the client as the upstream wrote it, and its turn is in the log as a failed one.
func TestARefusalIsForwarded(t *testing.T) {
	const refusal = `{"error": {"message":"slow down", "type":"requests","code":"rate_limit_exceeded","x":1}}`
	for name, test := range endpoints {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, refusal)
			})
			g := newGateway(t, u)
			response, got := g.post(t, test.path, test.request)
			if response.StatusCode != http.StatusTooManyRequests || got != refusal || response.Header.Get("Retry-After") != "7" ||
				response.Header.Get("Content-Type") != "application/json; charset=utf-8" {
				t.Errorf("got %d %v %s", response.StatusCode, response.Header, got)
			}
			entries := g.entries(t, response)
			if last := entries[len(entries)-1]; last.Error == nil || last.Error.Reason != continuo.ReasonRateLimit {
				t.Errorf("the log ends with %+v", last)
			}
		})
	}
}

// A stream that breaks off anywhere ends with an error of its protocol, once, after what had arrived, and the log has the
// partial text.
func TestABrokenStreamEndsWithAnError(t *testing.T) {
	for name, test := range endpoints {
		t.Run(name, func(t *testing.T) {
			at := strings.Index(test.stream, "Grüß") + len("Grüß")
			at += strings.Index(test.stream[at:], "\n") + 3 // after the event
			for broken, tail := range map[string]string{
				"cut": "", "malformed": "data: {\"choices\":[{]}\n\n", "cut in an event": "data: {\"choi",
				"an error event": "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"},\"type\":\"error\"}\n\n",
			} {
				u := newUpstream(t, stream(test.stream[:at]+tail))
				g := newGateway(t, u)
				response, got := g.post(t, test.path, test.request)
				rest, found := strings.CutPrefix(got, strings.TrimRight(test.stream[:at], "\r\n"))
				if !found || strings.Count(rest, "\"error\":{") != 1 || strings.Contains(rest, "[DONE]") || broken != "an error event" && tail != "" && strings.Contains(rest, tail) {
					t.Errorf("%s: after %q the client got %q", broken, test.stream[:at], rest)
				}
				if broken == "an error event" && !strings.HasSuffix(rest, tail) {
					t.Errorf("the upstream's error %q was not forwarded: %q", tail, rest)
				}
				entries := g.entries(t, response)
				if last := entries[len(entries)-1]; last.Error == nil || !strings.HasPrefix(last.Content.String(), "Grüß") {
					t.Errorf("%s: the log ends with %+v", broken, last)
				}
			}
		})
	}
}

// Nothing of an event that cannot be read is sent on, also where the upstream had completed blocks that are kept for it.
func TestAnUnreadableEventIsNotForwarded(t *testing.T) {
	head := messagesStream[:strings.Index(messagesStream, "event: content_block_start")] +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"redacted_thinking\",\"data\":\"x\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	const unreadable = "event: content_block_delta\ndata: {[]}\n\n"
	g := newGateway(t, newUpstream(t, stream(head+unreadable)))
	_, got := g.post(t, endpoints["messages"].path, endpoints["messages"].request)
	if rest, ok := strings.CutPrefix(got, head); !ok || !strings.HasPrefix(rest, "event: error\n") {
		t.Errorf("the client got %q", got)
	}
}

// When a client leaves, the request to the upstream ends, and what had arrived is in the log.
func TestAClientThatLeavesCancelsTheRequest(t *testing.T) {
	for name, test := range endpoints {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			u := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				w.Header().Set("Content-Type", "text/event-stream")
				at := strings.Index(test.stream, "Grüß")
				_, _ = io.WriteString(w, test.stream[:at+strings.Index(test.stream[at:], "\n\n")+2])
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			g := newGateway(t, u)
			ctx, leave := context.WithCancel(t.Context())
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL+test.path, strings.NewReader(test.request))
			if err != nil {
				t.Fatal(err)
			}
			response, err := g.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			read := make([]byte, 0, 4096)
			for !bytes.Contains(read, []byte("Grüß")) {
				piece := make([]byte, 512)
				n, err := response.Body.Read(piece)
				if err != nil {
					t.Fatal(err)
				}
				read = append(read, piece[:n]...)
			}
			leave()
			response.Body.Close()
			<-ended
			listener := g.log.Listen(response.Header.Get("X-Conversation-ID"))
			defer listener.Close()
			for {
				changed := listener.Changed()
				entries := g.entries(t, response)
				if last := entries[len(entries)-1]; last.Role == continuo.Assistant {
					if last.Error == nil || last.Error.Reason != continuo.ReasonCancelled || !strings.HasPrefix(last.Content.String(), "Grüß") {
						t.Errorf("the log ends with %+v", last)
					}
					return
				}
				select {
				case <-changed:
				case <-t.Context().Done():
					t.Fatal("the answer did not end")
				}
			}
		})
	}
}

// Errors have the form of the endpoint that was called.
func TestErrorsHaveTheFormOfTheEndpoint(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	for _, test := range []struct {
		path, body, header string
		status             int
		want               string
	}{
		{"/v1/chat/completions", `{"model":"nope","messages":[{"role":"user","content":"x"}]}`, "", 404, `"code":"model_not_found"`},
		{"/v1/chat/completions", `{"model":"gpt"}`, "", 400, `"param":"messages"`},
		{"/v1/chat/completions", `{"model":`, "", 400, `"type":"invalid_request_error"`},
		{"/v1/messages", `{"model":"nope","messages":[{"role":"user","content":"x"}]}`, "2023-06-01", 404, `{"type":"error","error":{"type":"not_found_error"`},
		{"/v1/chat/completions", `{"model":"claude","messages":[{"role":"tool","tool_call_id":"b","content":"seen"}]}`, "", 400, `"type":"invalid_request_error"`},
		{"/v1/messages", `{"model":"claude","messages":[]}`, "2023-06-01", 400, `{"type":"error","error":{"type":"invalid_request_error"`},
		{"/v1beta/models/nope:generateContent", `{"contents":[{"role":"user","parts":[{"text":"x"}]}]}`, "", 404, `"status":"NOT_FOUND"`},
		{"/v1beta/models/gpt:generateContent", `{"contents":7}`, "", 400, `"status":"INVALID_ARGUMENT"`},
		{"/v1beta/models/gpt:tune", `{}`, "", 404, `"status":"NOT_FOUND"`},
		{"/v1beta/models/gpt:countTokens", `{"contents":[{"role":"user","parts":[{"text":"hello there"}]}]}`, "", 200, `{"totalTokens":`},
		{"/v1/messages/count_tokens", `{"model":"claude","messages":[{"role":"user","content":"hello there"}]}`, "2023-06-01", 200, `{"input_tokens":`},
		{"/v1/nothing", `{}`, "2023-06-01", 404, `{"type":"error","error":{"type":"not_found_error"`},
		{"/v1/nothing", `{}`, "", 404, `"code":"not_found"`},
	} {
		header := []string{"X-Test", "1"}
		if test.header != "" {
			header = []string{"Anthropic-Version", test.header}
		}
		response, got := g.post(t, test.path, test.body, header...)
		if response.StatusCode != test.status || !strings.Contains(got, test.want) || !json.Valid([]byte(got)) {
			t.Errorf("%s %s: got %d %s, want %d with %s", test.path, test.body, response.StatusCode, got, test.status, test.want)
		}
	}
}

// A request to a model of another protocol is built from its messages, and the answer has the form of the endpoint:
// streamed and whole, text and calls.
func TestAnEndpointBeforeAModelOfAnotherProtocol(t *testing.T) {
	const call = `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"at\": 1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":7}}`
	const use = `{"id":"m1","type":"message","role":"assistant","model":"claude-4","content":[{"type":"tool_use","id":"call_1","name":"look","input":{"at":1}}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":7}}`
	whole := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		path, request string
		answer        http.HandlerFunc
		sent          []string // parts of the request that reached the upstream
		want          []string // parts of the answer, in order
	}{
		"chat completions, streamed": {
			"/v1/chat/completions", `{"model":"claude","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]}`,
			stream(messagesStream),
			[]string{`"system":[{"type":"text","text":"Be brief."`, `"text":"hi"`},
			[]string{`"role":"assistant"`, `"delta":{"content":"Grüß Gott"}`, `"finish_reason":"stop"`, `"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16`, "data: [DONE]\n\n"},
		},
		"messages, streamed": {
			"/v1/messages", `{"model":"gpt","max_tokens":9,"stream":true,"system":"Be brief.","messages":[{"role":"user","content":"hi"}]}`,
			stream(chatStream),
			[]string{`{"role":"system","content":"Be brief."}`, `{"role":"user","content":"hi"}`},
			[]string{
				"event: message_start", `"model":"gpt"`, "event: content_block_start", `"text_delta","text":"Grüß"`, `"text":" Gott"`,
				"event: content_block_stop", `"stop_reason":"end_turn"`, "event: message_stop\n",
			},
		},
		"chat completions with a call": {
			"/v1/chat/completions", `{"model":"claude","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]}`,
			whole(use),
			[]string{`"name":"look"`},
			[]string{`"object":"chat.completion"`, `"content":null`, `"id":"call_1"`, `"name":"look","arguments":"{\"at\":1}"`, `"finish_reason":"tool_calls"`, `"total_tokens":16`},
		},
		"messages with a call": {
			"/v1/messages", `{"model":"gpt","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"look","input_schema":{"type":"object"}}]}`,
			whole(call),
			[]string{`"name":"look"`},
			[]string{`"type":"message"`, `{"type":"tool_use","id":"call_1","name":"look","input":{"at":1}}`, `"stop_reason":"tool_use"`, `"output_tokens":7`},
		},
		"Gemini, streamed": {
			"/v1beta/models/gpt:streamGenerateContent?alt=sse", `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
			stream(chatStream),
			[]string{`{"role":"system","content":"Be brief."}`, `{"role":"user","content":"hi"}`},
			[]string{`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Grüß"}]}`, `{"text":" Gott"}`, `"finishReason":"STOP"`, `"modelVersion":"gpt"`},
		},
		"Gemini with a call": {
			"/v1beta/models/claude:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"look","parametersJsonSchema":{"type":"object"}}]}]}`,
			whole(use),
			[]string{`"name":"look"`},
			[]string{`"functionCall":{"id":"call_1","name":"look","args":{"at":1}}`, `"finishReason":"STOP"`, `"totalTokenCount":16`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.answer)
			g := newGateway(t, u)
			response, got := g.post(t, test.path, test.request)
			if response.StatusCode != http.StatusOK {
				t.Fatalf("got %d %s", response.StatusCode, got)
			}
			request := <-u.requests
			for _, part := range test.sent {
				if !strings.Contains(request.body, part) {
					t.Errorf("the upstream got %s without %s", request.body, part)
				}
			}
			rest := got
			for _, part := range test.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Errorf("the client got %s without %s in its place", got, part)
				}
				rest = after
			}
			if entries := g.entries(t, response); len(entries) != 2 {
				t.Errorf("the log has %+v", entries)
			}
		})
	}
}

// The calls of an answer are the client's: the turn ends with them, and the next request has the results of all of them.
func TestResultsComeWithTheNextRequest(t *testing.T) {
	calls := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":"{}"}},{"index":1,"id":"b","type":"function","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	u := newUpstream(t, stream(calls), stream(chatStream))
	g := newGateway(t, u)
	_, _ = g.post(t, "/v1/chat/completions", `{"model":"gpt","stream":true,"messages":[{"role":"user","content":"hi"}]}`, "X-Conversation-ID", "trip")
	<-u.requests
	const one, other = `{"role":"tool","tool_call_id":"b","content":"seen"}`, `{"role":"tool","tool_call_id":"a","content":"heard"}`
	for _, lacking := range []string{one, `{"role":"user","content":"and now?"}`, one + `,{"role":"user","content":"and now?"}`} {
		response, got := g.post(t, "/v1/chat/completions", `{"model":"gpt","stream":true,"messages":[`+lacking+`]}`, "X-Conversation-ID", "trip")
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(got, "no result of the call a") || !strings.Contains(got, `"type":"invalid_request_error"`) {
			t.Errorf("%s: got %d %s", lacking, response.StatusCode, got)
		}
	}
	response, got := g.post(t, "/v1/chat/completions", `{"model":"gpt","stream":true,"messages":[`+one+","+other+`]}`, "X-Conversation-ID", "trip")
	if !strings.Contains(got, `"content":"Grüß"`) || !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Fatalf("got %s", got)
	}
	if sent := (<-u.requests).body; !strings.Contains(sent, `"content":"hi"`) || !strings.Contains(sent, "seen") || !strings.Contains(sent, "heard") || strings.Count(sent, `"role":"tool"`) != 2 {
		t.Errorf("the upstream got %s", sent)
	}
	if got, want := shownLog(g.entries(t, response)), "user hi, assistant (a b), tool b seen, tool a heard, assistant Grüß Gott"; got != want {
		t.Errorf("the log has %s, want %s", got, want)
	}
}

// A client that sends its whole history with each request stays in one conversation, which has each message once; an edited
// message makes a fork; and a request that failed and is sent again does not repeat its messages.
func TestAGrowingHistoryIsOneConversation(t *testing.T) {
	answer := func(text string) http.HandlerFunc {
		return stream(`data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	}
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }
	u := newUpstream(t, answer("A"), refuse, answer("B"), answer("C"), answer("D"))
	g := newGateway(t, u)
	one := `{"role":"user","content":"one"}`
	ask := func(messages ...string) *http.Response {
		response, _ := g.post(t, "/v1/chat/completions", `{"model":"gpt","stream":true,"messages":[`+strings.Join(messages, ",")+`]}`)
		return response
	}
	texts := func(response *http.Response) string {
		var texts []string
		for _, entry := range g.entries(t, response) {
			if text := entry.Content.String(); text != "" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, " ")
	}
	first := ask(one)
	said := `{"role":"assistant","content":"A"}`
	ask(one, said, `{"role":"user","content":"two"}`)
	second := ask(one, said, `{"role":"user","content":"two"}`)
	third := ask(one, said, `{"role":"user","content":"two"}`, `{"role":"assistant","content":"B"}`, `{"role":"user","content":"three"}`)
	if got := texts(third); got != "one A two B three C" || third.Header.Get("X-Conversation-ID") != first.Header.Get("X-Conversation-ID") || third.Header.Get("X-Continuo-Matched") != "prefix" {
		t.Errorf("the conversation has %q, matched by %s; it was %s, %s, %s", got, third.Header.Get("X-Continuo-Matched"),
			first.Header.Get("X-Conversation-ID"), second.Header.Get("X-Conversation-ID"), third.Header.Get("X-Conversation-ID"))
	}
	edited := ask(one, said, `{"role":"user","content":"zwei"}`)
	if got := texts(edited); got != "one A zwei D" || edited.Header.Get("X-Conversation-ID") == first.Header.Get("X-Conversation-ID") {
		t.Errorf("the fork has %q", got)
	}
	conversation, err := g.log.Conversation(t.Context(), edited.Header.Get("X-Conversation-ID"))
	if err != nil || string(conversation.Metadata) != `{"rewritten":true}` || conversation.ParentID != first.Header.Get("X-Conversation-ID") {
		t.Errorf("the fork is %+v, %v", conversation, err)
	}
}

// A model that an upstream serves is asked under the name that the client gave, where the upstream says so with the
// client's own credentials, but never with a key of this server.
func TestAServedModelWithTheClientsCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		path, answer, header, value, want string
	}{
		"a bearer token":     {"/v1/chat/completions", chatStream, "Authorization", "Bearer the-clients-key", "Bearer the-clients-key"},
		"Anthropic's header": {"/v1/messages", messagesStream, "X-Api-Key", "the-clients-key", "the-clients-key"},
		"a key of ours":      {"/v1/chat/completions", chatStream, "Authorization", "Bearer " + auth.Prefix + "0123", ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, stream(test.answer))
			g := newGateway(t, u)
			_, got := g.post(t, test.path, `{"model":"served-x","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, test.header, test.value, "X-Continuo-Key", "ours")
			if got != test.answer {
				t.Fatalf("got %s", got)
			}
			request := <-u.requests
			if value := request.header.Get(test.header); value != test.want || !strings.Contains(request.body, `"model":"served-x"`) || request.header.Get("X-Continuo-Key") != "" {
				t.Errorf("the upstream got %q, %s", value, request.body)
			}
		})
	}
}

// The built-in model has no upstream: each endpoint answers from its text, streamed and whole.
func TestTheBuiltInModelAnswersThroughEachEndpoint(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"demo","stream":%v,"messages":[{"role":"user","content":"My name is Ada."}]}`,
		"/v1/messages":         `{"model":"demo","max_tokens":99,"stream":%v,"messages":[{"role":"user","content":"My name is Ada."}]}`,
		"/v1/responses":        `{"model":"demo","stream":%v,"input":"My name is Ada."}`,
	} {
		for _, streamed := range []bool{true, false} {
			response, got := g.post(t, path, fmt.Sprintf(body, streamed))
			if response.StatusCode != http.StatusOK || !strings.Contains(got, "demo") || strings.HasPrefix(got, "{") == streamed {
				t.Errorf("%s, streamed %v: got %d %s", path, streamed, response.StatusCode, got)
			}
		}
	}
}

// What a built request lacks of the client's is named in a header; a forwarded one lacks nothing.
func TestOmittedMembersAreNamed(t *testing.T) {
	for name, test := range map[string]struct{ path, request, want string }{
		"another protocol": {
			"/v1/chat/completions", `{"model":"claude","messages":[{"role":"user","content":"x"}],"top_p":0.5,"tool_choice":"required","parallel_tool_calls":true,"seed":null,"temperature":1,"user":"u"}`,
			"tool_choice", // there are no tools
		},
		"Gemini's":        {"/v1beta/models/gpt:generateContent", `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"topK":3,"temperature":1},"toolConfig":{},"labels":{}}`, "generationConfig.topK, labels"},
		"Responses":       {"/v1/responses", `{"model":"gpt","input":"x","top_p":1,"reasoning":{"effort":"low"},"max_tool_calls":2,"metadata":{}}`, "max_tool_calls, reasoning.effort"},
		"same protocol":   {"/v1/chat/completions", `{"model":"gpt","messages":[{"role":"user","content":"x"}],"top_p":0.5}`, ""},
		"nothing to omit": {"/v1/responses", `{"model":"gpt","input":"x","tool_choice":"auto"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := chatStream
			if strings.Contains(test.request, `"claude"`) {
				answer = messagesStream
			}
			g := newGateway(t, newUpstream(t, stream(answer)))
			response, got := g.post(t, test.path, test.request)
			if omitted := response.Header.Get("X-Continuo-Omitted"); omitted != test.want || response.StatusCode != http.StatusOK {
				t.Errorf("got %q, want %q: %d %s", omitted, test.want, response.StatusCode, got)
			}
		})
	}
}

// A request that has nothing but a system message is forwarded and recorded like any other.
func TestASystemMessageAloneIsARequest(t *testing.T) {
	const body = `{"model":"gpt-4o-2024","stream":true,"messages":[{"role":"system","content":"Write a poem."}]}`
	u := newUpstream(t, stream(chatStream))
	g := newGateway(t, u)
	response, got := g.post(t, "/v1/chat/completions", strings.Replace(body, "gpt-4o-2024", "gpt", 1))
	if got != chatStream {
		t.Fatalf("got %d %s", response.StatusCode, got)
	}
	if sent := (<-u.requests).body; sent != body {
		t.Errorf("the upstream got %s", sent)
	}
	if entries := g.entries(t, response); len(entries) != 2 || entries[0].Role != continuo.System || entries[0].Content.String() != "Write a poem." {
		t.Errorf("the log has %+v", entries)
	}
}
