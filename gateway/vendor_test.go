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
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/anthropic"
	"github.com/continuo-log/continuo/model/gemini"
	"github.com/continuo-log/continuo/model/openai"
	modelresponses "github.com/continuo-log/continuo/model/responses"
	"github.com/continuo-log/continuo/store/storetest"
)

// vendor is a protocol of upstreams with the pieces of which a test makes an answer: the events of a stream up to the first
// words of a text, those of the rest of the text, and its last ones; the same answer as one value; and an error event.
type vendor struct {
	protocol         string
	head, more, end  string
	whole, failed    string
	keepAlive, ghost string // an event without content, and text that belongs to no answer
	refusals         []refusal
}

// The text of each vendor's answer.
const (
	firstWords = "part one "
	lastWords  = "Grüß 🚀"
)

// refusal is an upstream's answer with an error status, and how another endpoint reports it.
type refusal struct {
	status int
	body   string
	header [2]string
	reason continuo.FailureReason
	// reported is the status that a client of another protocol gets.
	reported int
}

// data is an event without a name; named one whose name is its type.
func data(value string) string { return "data: " + value + "\n\n" }

func named(value string) string {
	kind := struct{ Type string }{}
	if err := json.Unmarshal([]byte(value), &kind); err != nil {
		panic(err)
	}
	return "event: " + kind.Type + "\n" + data(value)
}

func chatChunk(delta, finish string) string {
	return data(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`)
}

const openAIRefused = `{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`

// openAIRefusals are OpenAI's, through both of its APIs.
var openAIRefusals = []refusal{
	{400, fmt.Sprintf(openAIRefused, "Unsupported value: top_p", "invalid_request_error", "unsupported_value"), [2]string{}, continuo.ReasonUpstream, 400},
	{400, fmt.Sprintf(openAIRefused, "This model's maximum context length is 8192 tokens", "invalid_request_error", "context_length_exceeded"), [2]string{}, continuo.ReasonContextOverflow, 400},
	{401, fmt.Sprintf(openAIRefused, "Incorrect API key provided", "invalid_request_error", "invalid_api_key"), [2]string{}, continuo.ReasonUpstream, 502},
	{404, fmt.Sprintf(openAIRefused, "The model does not exist", "invalid_request_error", "model_not_found"), [2]string{}, continuo.ReasonUpstream, 404},
	{429, fmt.Sprintf(openAIRefused, "Rate limit reached", "requests", "rate_limit_exceeded"), [2]string{"Retry-After", "7"}, continuo.ReasonRateLimit, 429},
	{429, fmt.Sprintf(openAIRefused, "You exceeded your current quota", "insufficient_quota", "insufficient_quota"), [2]string{}, continuo.ReasonRateLimit, 429},
	{500, fmt.Sprintf(openAIRefused, "The server had an error", "server_error", ""), [2]string{}, continuo.ReasonUpstream, 502},
	{503, fmt.Sprintf(openAIRefused, "The engine is currently overloaded", "server_error", ""), [2]string{"Retry-After", "3"}, continuo.ReasonUpstream, 503},
	{502, "<html><h1>Bad gateway</h1></html>", [2]string{"Content-Type", "text/html"}, continuo.ReasonUpstream, 502},
}

const (
	anthropicRefused = `{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_upstream"}`
	geminiRefused    = `{"error":{"code":%d,"message":%q,"status":%q}}`
)

const geminiPiece = `{"candidates":[{"content":{"role":"model","parts":[{"text":%q}]},"index":0}],"modelVersion":"m"}`

func messagesText(text string) string {
	return named(fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text))
}

func responsesText(text string, number int) string {
	return named(fmt.Sprintf(`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_u","output_index":0,"content_index":0,"delta":%q}`, number, text))
}

// responsesWhole is a response of a status with one message.
func responsesWhole(status, text, more string) string {
	return fmt.Sprintf(`{"id":"resp_u","object":"response","created_at":1,"status":%q,"model":"m","error":null,"incomplete_details":null,"output":[{"id":"msg_u","type":"message","status":"completed","role":"assistant",`+
		`"content":[{"type":"output_text","text":%q,"annotations":[]}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":13}%s}`, status, text, more)
}

var vendors = []*vendor{
	{
		protocol:  model.ProtocolOpenAIChat,
		head:      chatChunk(`{"role":"assistant","content":""}`, "null") + chatChunk(`{"content":"part one "}`, "null"),
		more:      chatChunk(`{"content":"Grüß 🚀"}`, "null"),
		end:       chatChunk(`{}`, `"stop"`) + data(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}`) + data("[DONE]"),
		whole:     `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"part one Grüß 🚀"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}`,
		failed:    data(`{"error":{"message":"upstream overloaded","type":"server_error","param":null,"code":"overloaded"}}`),
		keepAlive: ": ping\n\n",
		ghost:     chatChunk(`{"content":"ghost"}`, "null"),
		refusals:  openAIRefusals,
	},
	{
		protocol: model.ProtocolResponses,
		head: named(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_u","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}`) +
			named(`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_u","type":"message","status":"in_progress","role":"assistant","content":[]}}`) +
			named(`{"type":"response.content_part.added","sequence_number":2,"item_id":"msg_u","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`) +
			responsesText(firstWords, 3),
		more: responsesText(lastWords, 4),
		end: named(`{"type":"response.output_item.done","sequence_number":5,"output_index":0,"item":{"id":"msg_u","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"part one Grüß 🚀","annotations":[]}]}}`) +
			named(`{"type":"response.completed","sequence_number":6,"response":`+responsesWhole("completed", firstWords+lastWords, "")+`}`),
		whole:     responsesWhole("completed", firstWords+lastWords, ""),
		failed:    named(`{"type":"error","sequence_number":4,"code":"server_error","message":"upstream overloaded","param":null}`),
		keepAlive: ": ping\n\n",
		ghost:     responsesText("ghost", 7),
		refusals:  openAIRefusals,
	},
	{
		protocol: model.ProtocolAnthropic,
		head: named(`{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}`) +
			named(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) + messagesText(firstWords),
		more: messagesText(lastWords),
		end: named(`{"type":"content_block_stop","index":0}`) + named(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":4}}`) +
			named(`{"type":"message_stop"}`),
		whole:     `{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"part one Grüß 🚀"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":4}}`,
		failed:    named(`{"type":"error","error":{"type":"overloaded_error","message":"upstream overloaded"}}`),
		keepAlive: named(`{"type":"ping"}`),
		ghost:     messagesText("ghost"),
		refusals: []refusal{
			{400, fmt.Sprintf(anthropicRefused, "invalid_request_error", "top_p: Extra inputs are not permitted"), [2]string{}, continuo.ReasonUpstream, 400},
			{400, fmt.Sprintf(anthropicRefused, "invalid_request_error", "prompt is too long: 209313 tokens > 200000 maximum"), [2]string{}, continuo.ReasonContextOverflow, 400},
			{401, fmt.Sprintf(anthropicRefused, "authentication_error", "invalid x-api-key"), [2]string{}, continuo.ReasonUpstream, 502},
			{403, fmt.Sprintf(anthropicRefused, "permission_error", "not allowed"), [2]string{}, continuo.ReasonUpstream, 502},
			{404, fmt.Sprintf(anthropicRefused, "not_found_error", "model: claude-0"), [2]string{}, continuo.ReasonUpstream, 404},
			{413, fmt.Sprintf(anthropicRefused, "request_too_large", "Request exceeds the maximum allowed number of bytes"), [2]string{}, continuo.ReasonContextOverflow, 400},
			{429, fmt.Sprintf(anthropicRefused, "rate_limit_error", "This request would exceed the rate limit"), [2]string{"Retry-After", "11"}, continuo.ReasonRateLimit, 429},
			{500, fmt.Sprintf(anthropicRefused, "api_error", "Internal server error"), [2]string{"X-Should-Retry", "false"}, continuo.ReasonUpstream, 502},
			{529, fmt.Sprintf(anthropicRefused, "overloaded_error", "Overloaded"), [2]string{}, continuo.ReasonUpstream, 503},
		},
	},
	{
		protocol: model.ProtocolGemini,
		head:     data(fmt.Sprintf(geminiPiece, firstWords)),
		more:     data(fmt.Sprintf(geminiPiece, lastWords)),
		end:      data(`{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"totalTokenCount":13},"modelVersion":"m"}`),
		whole:    `{"candidates":[{"content":{"role":"model","parts":[{"text":"part one Grüß 🚀"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"totalTokenCount":13},"modelVersion":"m"}`,
		failed:   data(fmt.Sprintf(geminiRefused, 503, "upstream overloaded", "UNAVAILABLE")), keepAlive: ": ping\n\n",
		ghost: data(fmt.Sprintf(geminiPiece, "ghost")),
		refusals: []refusal{
			{400, fmt.Sprintf(geminiRefused, 400, "Invalid value at generation_config.top_k", "INVALID_ARGUMENT"), [2]string{}, continuo.ReasonUpstream, 400},
			{400, fmt.Sprintf(geminiRefused, 400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "INVALID_ARGUMENT"), [2]string{}, continuo.ReasonContextOverflow, 400},
			{403, fmt.Sprintf(geminiRefused, 403, "Permission denied", "PERMISSION_DENIED"), [2]string{}, continuo.ReasonUpstream, 502},
			{404, fmt.Sprintf(geminiRefused, 404, "models/x is not found", "NOT_FOUND"), [2]string{}, continuo.ReasonUpstream, 404},
			{429, fmt.Sprintf(geminiRefused, 429, "Resource has been exhausted", "RESOURCE_EXHAUSTED"), [2]string{"Retry-After", "5"}, continuo.ReasonRateLimit, 429},
			{500, fmt.Sprintf(geminiRefused, 500, "An internal error has occurred", "INTERNAL"), [2]string{}, continuo.ReasonUpstream, 502},
			{503, fmt.Sprintf(geminiRefused, 503, "The model is overloaded", "UNAVAILABLE"), [2]string{}, continuo.ReasonUpstream, 503},
			{504, fmt.Sprintf(geminiRefused, 504, "Deadline exceeded", "DEADLINE_EXCEEDED"), [2]string{}, continuo.ReasonTimeout, 504},
		},
	},
}

// clientEndpoint is an endpoint as a client calls it.
type clientEndpoint struct {
	name, protocol string // of the upstreams to which it forwards; "" for none
	path, stream   string // of requests, %s being the model; stream of those for a stream
	body           string // %s is the model, %t whether the answer is streamed
}

var clientEndpoints = []clientEndpoint{
	{"chat", model.ProtocolOpenAIChat, "/v1/chat/completions", "", `{"model":%q,"stream":%t,"messages":[{"role":"user","content":"hi"}]}`},
	{"responses", "", "/v1/responses", "", `{"model":%q,"stream":%t,"input":"hi"}`},
	{"responses of a client with its own history", model.ProtocolResponses, "/v1/responses", "", `{"model":%q,"stream":%t,"store":false,"input":"hi"}`},
	{"messages", model.ProtocolAnthropic, "/v1/messages", "", `{"model":%q,"stream":%t,"max_tokens":99,"messages":[{"role":"user","content":"hi"}]}`},
	{"gemini", model.ProtocolGemini, "/v1beta/models/%s:generateContent", "/v1beta/models/%s:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`},
}

// request is the path and the body of a request for an answer of a model.
func (e *clientEndpoint) request(name string, streamed bool) (path, body string) {
	path, body = e.path, e.body
	if streamed && e.stream != "" {
		path = e.stream
	}
	if strings.Contains(path, "%s") {
		path = fmt.Sprintf(path, name)
	}
	if strings.Contains(body, "%q") {
		body = fmt.Sprintf(body, name, streamed)
	}
	return path, body
}

// ending is how a client sees an answer: its text, and how it ended.
type ending struct {
	text          string
	complete      bool
	failed        bool   // the protocol's own error ended it
	finish, wrong string // the reason of its end, and what breaks the protocol
	names         []string
}

// readStream reads a stream as a strict client of an endpoint does.
func (e *clientEndpoint) readStream(wire string) (got ending) {
	events := sse.NewReader(strings.NewReader(wire), 0)
	number := -1
	for {
		event, err := events.Next()
		if err != nil {
			if err != io.EOF {
				got.wrong = err.Error()
			}
			return got
		}
		text := string(event.Data)
		got.names = append(got.names, event.Type)
		if text == "[DONE]" && e.protocol != model.ProtocolGemini && e.protocol != model.ProtocolAnthropic {
			if e.protocol == model.ProtocolOpenAIChat {
				got.complete = got.finish != ""
			}
			if !got.complete && !got.failed {
				got.wrong = "[DONE] comes before the end"
			}
			if _, err := events.Next(); err != io.EOF {
				got.wrong = "an event comes after [DONE]"
			}
			return got
		}
		if event.Cut || !json.Valid(event.Data) {
			got.wrong = "this is no event: " + text
			return got
		}
		if got.complete || got.failed {
			got.wrong = "after the end comes " + text
			return got
		}
		e.readEvent(&got, event, &number)
	}
}

// wireAnswer has the members of all protocols' events that a test looks at.
type wireAnswer struct {
	Type           string
	SequenceNumber *int `json:"sequence_number"`
	Error          json.RawMessage
	Choices        []struct {
		Delta, Message struct{ Content string }
		FinishReason   string `json:"finish_reason"`
	}
	Delta      json.RawMessage
	Response   json.RawMessage
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text    string
				Thought bool
			}
		}
		FinishReason string
	}
	Content    []struct{ Type, Text string }
	StopReason string `json:"stop_reason"`
	Status     string
	Output     []struct {
		Type    string
		Content []struct{ Type, Text string }
	}
}

func (e *clientEndpoint) readEvent(got *ending, event sse.Event, number *int) {
	var answer wireAnswer
	if err := json.Unmarshal(event.Data, &answer); err != nil {
		got.wrong = err.Error()
		return
	}
	got.failed = len(answer.Error) > 0 && string(answer.Error) != "null" || answer.Type == "error"
	switch e.protocol {
	case model.ProtocolOpenAIChat, model.ProtocolGemini:
		e.addWhole(got, &answer)
		got.complete = e.protocol == model.ProtocolGemini && got.finish != ""
	case model.ProtocolAnthropic:
		var delta struct {
			Text       string
			StopReason string `json:"stop_reason"`
		}
		_ = json.Unmarshal(answer.Delta, &delta)
		got.text += delta.Text
		if delta.StopReason != "" {
			got.finish = delta.StopReason
		}
		got.complete = answer.Type == "message_stop"
	default:
		if answer.SequenceNumber == nil || *answer.SequenceNumber <= *number || *answer.SequenceNumber > *number+1 && answer.Type != "error" {
			got.wrong = fmt.Sprintf("the event after %d is %s", *number, event.Data)
		} else {
			*number = *answer.SequenceNumber
		}
		var delta string
		if answer.Type == "response.output_text.delta" && json.Unmarshal(answer.Delta, &delta) == nil {
			got.text += delta
		}
		got.complete = answer.Type == "response.completed" || answer.Type == "response.incomplete"
		got.failed = got.failed || answer.Type == "response.failed"
		if got.complete {
			got.finish = strings.TrimPrefix(answer.Type, "response.")
		}
	}
	if e.protocol != model.ProtocolOpenAIChat && e.protocol != model.ProtocolGemini && event.Type != answer.Type {
		got.wrong = fmt.Sprintf("the event %s has the name %q", answer.Type, event.Type)
	}
}

// addWhole adds what an answer that is not streamed has, or a piece of the same form.
func (e *clientEndpoint) addWhole(got *ending, answer *wireAnswer) {
	for _, choice := range answer.Choices {
		got.text += choice.Delta.Content + choice.Message.Content
		if choice.FinishReason != "" {
			got.finish = choice.FinishReason
		}
	}
	for _, candidate := range answer.Candidates {
		for _, part := range candidate.Content.Parts {
			if !part.Thought {
				got.text += part.Text
			}
		}
		if candidate.FinishReason != "" {
			got.finish = candidate.FinishReason
		}
	}
	for _, part := range answer.Content {
		got.text += part.Text
	}
	for _, item := range answer.Output {
		for _, part := range item.Content {
			got.text += part.Text
		}
	}
	if answer.StopReason != "" || answer.Status != "" {
		got.finish = answer.StopReason + answer.Status
	}
}

// readWhole reads an answer that is not streamed.
func (e *clientEndpoint) readWhole(body string) (got ending) {
	var answer wireAnswer
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return ending{wrong: fmt.Sprintf("%s: %s", err, body)}
	}
	e.addWhole(&got, &answer)
	got.complete = got.finish != ""
	got.failed = len(answer.Error) > 0 && string(answer.Error) != "null"
	return got
}

// checkRefused checks that an answer is an error in the endpoint's own form.
func (e *clientEndpoint) checkRefused(t *testing.T, body string, status int) {
	t.Helper()
	var refused struct {
		Type  string
		Error struct {
			Message, Type, Status string
			Code                  json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(body), &refused); err != nil || refused.Error.Message == "" {
		t.Errorf("the error is %q", body)
		return
	}
	code := string(refused.Error.Code)
	switch {
	case e.protocol == model.ProtocolAnthropic && (refused.Type != "error" || refused.Error.Type == "" || code != ""),
		e.protocol == model.ProtocolGemini && (code != fmt.Sprint(status) || refused.Error.Status == ""),
		e.protocol != model.ProtocolAnthropic && e.protocol != model.ProtocolGemini && (refused.Error.Type == "" || !strings.HasPrefix(code, `"`)):
		t.Errorf("the error %s has not the form of the endpoint", body)
	}
}

// newVendorsGateway is a gateway before one upstream of each protocol, whose models have the names of the protocols.
func newVendorsGateway(t *testing.T, url string) *testGateway {
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	e, err := engine.New(log, engine.Options{Models: vendorModels(url, nil), Default: model.ProtocolOpenAIChat}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &testGateway{log: log, Server: httptest.NewServer(gateway.New(e, log, store, gateway.Options{}).Handler(continuo.Scope{ProjectID: continuo.DefaultProject}))}
	t.Cleanup(func() {
		g.Close()
		_ = e.Close(context.Background())
	})
	return g
}

func vendorModels(url string, client *http.Client) map[string]engine.Upstream {
	return map[string]engine.Upstream{
		model.ProtocolOpenAIChat: {Model: openai.New(openai.Options{BaseURL: url + "/v1", Name: "m", HTTPClient: client})},
		model.ProtocolResponses:  {Model: modelresponses.New(modelresponses.Options{BaseURL: url + "/v1", Name: "m", HTTPClient: client})},
		model.ProtocolAnthropic:  {Model: anthropic.New(anthropic.Options{BaseURL: url, Name: "m", HTTPClient: client})},
		model.ProtocolGemini:     {Model: gemini.New(gemini.Options{BaseURL: url, Name: "m", HTTPClient: client})},
	}
}

// vendorOf is the vendor of a request that reached an upstream, and whether it asks for a stream.
func vendorOf(r *http.Request, body []byte) (v *vendor, streamed bool) {
	protocol := model.ProtocolGemini
	switch r.URL.Path {
	case "/v1/chat/completions":
		protocol = model.ProtocolOpenAIChat
	case "/v1/responses":
		protocol = model.ProtocolResponses
	case "/v1/messages":
		protocol = model.ProtocolAnthropic
	}
	at := slices.IndexFunc(vendors, func(v *vendor) bool { return v.protocol == protocol })
	return vendors[at], strings.Contains(string(body), `"stream":true`) || strings.HasSuffix(r.URL.Path, ":streamGenerateContent")
}
