package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// raw is an upstream that writes what the mock does not: the bytes of one answer, given by the newest
// message, in each protocol.
type raw struct {
	chat, messages, responses, gemini []string // the events of the answer
	end                               string   // what comes after them: "", "hang" or "reset"
}

// The events of each protocol that the answers below are made of.
const (
	chatText  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"part one "},"finish_reason":null}]}` + "\n\n"
	chatStop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	chatDone  = "data: [DONE]\n\n"
	chatCalls = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"fs_list","arguments":"{\"path\":\"@state\"}"}}]},"finish_reason":null}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"fs_read","arguments":"{\"pa"}}]},"finish_reason":null}]}` + "\n\n"

	messageStart = "event: message_start\ndata: " + `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}` + "\n\n"
	messageText  = messageStart + "event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"part one "}}` + "\n\n"
	messageEnd = "event: content_block_stop\ndata: " + `{"type":"content_block_stop","index":0}` + "\n\n" +
		"event: message_delta\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}` + "\n\n"
	messageStop  = "event: message_stop\ndata: " + `{"type":"message_stop"}` + "\n\n"
	messageCalls = messageStart + "event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"call_a","name":"fs_list","input":{}}}` + "\n\n" +
		"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"@state\"}"}}` + "\n\n" +
		"event: content_block_stop\ndata: " + `{"type":"content_block_stop","index":0}` + "\n\n" +
		"event: content_block_start\ndata: " + `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call_b","name":"fs_read","input":{}}}` + "\n\n" +
		"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"pa"}}` + "\n\n"

	responseStart = "event: response.created\ndata: " + `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}}` + "\n\n"
	responseText  = responseStart + "event: response.output_item.added\ndata: " + `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}` + "\n\n" +
		"event: response.output_text.delta\ndata: " + `{"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"part one "}` + "\n\n"
	responseEnd   = "event: response.completed\ndata: " + `{"type":"response.completed","sequence_number":3,"response":{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"part one ","annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}}` + "\n\n"
	responseCalls = responseStart + "event: response.output_item.added\ndata: " + `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"fs_list","arguments":"","status":"in_progress"}}` + "\n\n" +
		"event: response.output_item.done\ndata: " + `{"type":"response.output_item.done","sequence_number":2,"output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"fs_list","arguments":"{\"path\":\"@state\"}","status":"completed"}}` + "\n\n" +
		"event: response.output_item.added\ndata: " + `{"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":{"id":"fc_2","type":"function_call","call_id":"call_b","name":"fs_read","arguments":"","status":"in_progress"}}` + "\n\n" +
		"event: response.function_call_arguments.delta\ndata: " + `{"type":"response.function_call_arguments.delta","sequence_number":4,"item_id":"fc_2","output_index":1,"delta":"{\"pa"}` + "\n\n"

	geminiHead = `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[]}}],"modelVersion":"m"}` + "\n\n"
	geminiText = `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"part one "}]}}]}` + "\n\n"
	geminiEnd  = `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":4}}` + "\n\n"
)

// raws are the answers by the message that asks for them.
var raws = map[string]raw{
	"hello":                {chat: []string{chatText, chatStop, chatDone}, messages: []string{messageText, messageEnd, messageStop}, responses: []string{responseText, responseEnd, chatDone}, gemini: []string{geminiText, geminiEnd}},
	"raw: nothing":         {},
	"raw: no end":          {chat: []string{chatText}, messages: []string{messageText}, responses: []string{responseText}, gemini: []string{geminiText}},
	"raw: reset":           {chat: []string{chatText}, messages: []string{messageText}, responses: []string{responseText}, gemini: []string{geminiText}, end: "reset"},
	"raw: malformed event": {chat: []string{chatText, "data: {\"choices\": [broken\n\n", chatStop, chatDone}, messages: []string{messageText, "event: content_block_delta\ndata: {\"type\": broken\n\n", messageEnd, messageStop}, responses: []string{responseText, "event: response.output_text.delta\ndata: {\"type\": broken\n\n", responseEnd}, gemini: []string{geminiText, "data: {\"candidates\": broken\n\n", geminiEnd}},
	"raw: error event": {
		chat:      []string{chatText, `data: {"error":{"message":"overloaded","type":"server_error","code":"overloaded"}}` + "\n\n"},
		messages:  []string{messageText, "event: error\ndata: " + `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"},
		responses: []string{responseText, "event: error\ndata: " + `{"type":"error","sequence_number":3,"code":"server_error","message":"overloaded","param":null}` + "\n\n"},
		gemini:    []string{geminiText, `data: {"error":{"message":"overloaded","status":"UNAVAILABLE"}}` + "\n\n"},
	},
	"raw: silent from the headers": {end: "hang"},
	"raw: silent after the head": {
		chat:     []string{`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"},
		messages: []string{messageStart, "event: ping\ndata: {\"type\": \"ping\"}\n\n"}, responses: []string{responseStart}, gemini: []string{geminiHead}, end: "hang",
	},
	"raw: two calls":     {chat: []string{chatCalls}, messages: []string{messageCalls}, responses: []string{responseCalls}, end: "reset"},
	"raw: no last event": {chat: []string{chatText, chatStop}, messages: []string{messageText, messageEnd}, responses: []string{responseText, responseEnd}, gemini: []string{geminiText, geminiEnd}},
	"raw: more after it": {
		chat:      []string{chatText, chatStop, chatDone, strings.ReplaceAll(chatText, "part one", "ghost")},
		messages:  []string{messageText, messageEnd, messageStop, strings.ReplaceAll(messageText, "part one", "ghost")},
		gemini:    []string{geminiText, geminiEnd},
		responses: []string{responseText, responseEnd, strings.ReplaceAll(responseText, "part one", "ghost")},
	},
}

// startRaw starts the upstream of raw bytes.
func startRaw(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages, Input []struct{ Content json.RawMessage }
			Contents        []struct{ Parts json.RawMessage }
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		messages := append(body.Messages, body.Input...)
		for _, content := range body.Contents {
			messages = append(messages, struct{ Content json.RawMessage }{content.Parts})
		}
		if err != nil || len(messages) == 0 {
			http.Error(w, "no messages", http.StatusBadRequest)
			return
		}
		newest := newestText(messages[len(messages)-1].Content)
		for message, answer := range raws {
			if strings.HasPrefix(newest, message) {
				answer.write(w, r)
				return
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// newestText is what a user said last. The messages protocol has no two messages of one role in a row: behind an attempt
// that failed before it showed anything, the unanswered message and the next one are blocks of one message.
func newestText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct{ Text string }
	if json.Unmarshal(content, &blocks) != nil || len(blocks) == 0 {
		return ""
	}
	return blocks[len(blocks)-1].Text
}

func (a raw) write(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.Flush() // the client may have disconnected
	events := a.chat
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		events = a.messages
	case strings.HasSuffix(r.URL.Path, "/responses"):
		events = a.responses
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		events = a.gemini
	}
	for _, event := range events {
		_, _ = fmt.Fprint(w, event)
		_ = control.Flush()
	}
	switch a.end {
	case "hang":
		<-r.Context().Done()
	case "reset":
		if connection, _, err := control.Hijack(); err == nil {
			_ = connection.(*net.TCPConn).SetLinger(0)
			_ = connection.Close()
		}
	}
}

// TestBrokenBytes breaks answers in ways that need no mock, so that it runs everywhere.
func TestBrokenBytes(t *testing.T) {
	s := serve(t, hastyModels(startRaw(t).URL, "retries: 0", "breaker_failures: 0"))
	for _, fault := range []fault{
		{message: "raw: nothing", status: 502, want: failed("network", true, 0)},
		{message: "raw: no end", status: 502, want: failed("network", true, 0), whole: "part one two"},
		{message: "raw: reset", status: 502, want: failed("network", true, 0), whole: "part one two"},
		{message: "raw: malformed event", status: 502, want: failed("upstream", true, 0), whole: "part one two"},
		{message: "raw: error event", status: 502, want: failed("upstream", true, 0), whole: "part one two"},
		{message: "raw: silent from the headers", status: 504, want: failed("timeout", true, 0)},
		{message: "raw: silent after the head", status: 504, want: failed("timeout", true, 0)},
	} {
		runFault(t, s, fault, fault.models(), func(t *testing.T, model, session, _ string) { next(t, s, session, strings.TrimPrefix(model, hasty)) })
	}
}

// TestStreamsWithoutAFinalMarkAreWhole: what is missing or too much after the answer's end does not matter.
func TestStreamsWithoutAFinalMarkAreWhole(t *testing.T) {
	t.Parallel()
	s := serve(t, bothModels(startRaw(t).URL, "retries: 0"))
	for _, message := range []string{"hello", "raw: no last event", "raw: more after it"} {
		for _, model := range protocols {
			got := s.ask(t, model, model, message, true)
			if got.answer.Error != nil || got.text != "part one " || got.answer.Response != got.text || !slices.Equal(got.events, []string{"turn", "context", "delta", "done"}) {
				t.Errorf("%s %s: got %+v, %+v", message, model, got, got.answer.Error)
			}
		}
	}
}

// TestTwoCallsOneTorn: of an answer that breaks off in its second call the first stays, with a result that
// says that it was not run; the second is kept as far as it came.
func TestTwoCallsOneTorn(t *testing.T) {
	t.Parallel()
	s := serve(t, bothModels(startRaw(t).URL, "retries: 0"))
	for _, model := range protocols {
		if model == "gemini" {
			continue // its calls arrive whole
		}
		for _, streamed := range []bool{true, false} {
			session := fmt.Sprintf("%s-%v", model, streamed)
			got := s.ask(t, session, model, "raw: two calls", streamed)
			if failure := got.answer.Error; failure == nil || failure.Reason != continuo.ReasonNetwork {
				t.Errorf("%s: got %+v, %+v", session, got, failure)
			}
			entries := s.entries(t, session)
			if len(entries) != 3 {
				t.Fatalf("%s: the log has %+v, want a question, a failed answer and a result", session, entries)
			}
			kept, result := entries[1], entries[2]
			if len(kept.ToolCalls) != 1 || kept.ToolCalls[0].ID != "call_a" || kept.Error == nil || len(kept.Error.PartialToolCalls) != 1 {
				t.Fatalf("%s: the log has the answer %+v", session, kept)
			}
			if torn := kept.Error.PartialToolCalls[0]; torn != (continuo.PartialToolCall{ID: "call_b", Name: "fs_read", Arguments: `{"pa`}) {
				t.Errorf("%s: the torn call is %+v", session, torn)
			}
			if result.ToolCallID != "call_a" || !strings.Contains(result.Content.String(), "not run") {
				t.Errorf("%s: the result is %+v", session, result)
			}
			next(t, s, session, model)
		}
	}
}

// TestForeignFaults breaks streams with a program that knows nothing of these tests. It breaks them by the
// name of the model.
func TestForeignFaults(t *testing.T) {
	url := startFaulty(t).url
	settings := "model: keepalive\nmodels:\n"
	for _, name := range []string{"malformed", "nodone", "nofinish", "errorevent", "failed", "incomplete", "keepalive", "crlf", "html", "stall", "reset", "utf8split", "afterdone"} {
		settings += fmt.Sprintf("  %s: {base_url: \"%s/v1\", model: \"f:%s\", api_key_env: \"\"}\n", name, url, name)
	}
	s := serve(t, settings+turnSettings("retries: 0", "breaker_failures: 0", "idle_timeout: 3s"))
	for name, want := range map[string]struct {
		text   string
		reason continuo.FailureReason // "": the answer is whole
		status int
	}{
		"malformed":  {"part one ", "upstream", 0},
		"nodone":     {"part one ", "", 0},
		"nofinish":   {"part one ", "network", 0},
		"errorevent": {"part one ", "upstream", 0},
		"failed":     {"part one ", "", 0},
		"incomplete": {"part one ", "", 0},
		"keepalive":  {"part one", "", 0},
		"crlf":       {"part one ", "", 0},
		"html":       {"", "upstream", 502},
		"stall":      {"part one ", "timeout", 0},
		"reset":      {"part one ", "network", 0},
		"utf8split":  {"part one żółć 🚀 漢字", "", 0},
		"afterdone":  {"part one ", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.ask(t, name, name, "go", true)
			if got.text != want.text || got.answer.Response != want.text {
				t.Errorf("deltas %q, response %q; want %q", got.text, got.answer.Response, want.text)
			}
			var reason continuo.FailureReason
			status := 0
			if failure := got.answer.Error; failure != nil {
				reason, status = failure.Reason, failure.ProviderStatus
			}
			if reason != want.reason || status != want.status {
				t.Errorf("error %+v, want %s, %d", got.answer.Error, want.reason, want.status)
			}
			next(t, s, name, "keepalive")
		})
	}
}
