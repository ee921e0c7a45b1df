package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway/request"
)

// brokenHistories are histories that break the rules of the log, in chat completions and as Anthropic's messages, and what
// the log has of them.
var brokenHistories = map[string]struct{ chat, messages, log string }{
	"a call without a result": {
		`{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"two"}`,
		`{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":"two"}`,
		"user one, assistant (a), tool a " + request.NoResult + ", user two",
	},
	"some results": {
		`{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"b","content":"B"}`,
		`{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"B"}]}`,
		"user one, assistant (a b), tool b B, tool a " + request.NoResult,
	},
	"a result without a call": {
		`{"role":"user","content":"one"},{"role":"tool","tool_call_id":"x","content":"X"},{"role":"user","content":"two"}`,
		`{"role":"user","content":"one"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"X"},{"type":"text","text":"two"}]}`,
		"user one, tool x X hidden, user two",
	},
	"a result first": {
		`{"role":"tool","tool_call_id":"x","content":"X"},{"role":"user","content":"two"}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"X"},{"type":"text","text":"two"}]}`,
		"tool x X hidden, user two",
	},
	"a result that is late": {
		`{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"two"},{"role":"tool","tool_call_id":"a","content":"A"},{"role":"user","content":"three"}`,
		`{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":"two"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"},{"type":"text","text":"three"}]}`,
		"user one, assistant (a), tool a A, user two, user three",
	},
	"two results of a call": {
		`{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"A"},{"role":"tool","tool_call_id":"a","content":"again"}`,
		`{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"},{"type":"tool_result","tool_use_id":"a","content":"again"}]}`,
		"user one, assistant (a), tool a A, tool a again hidden",
	},
	"an open call at the end": {
		`{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
		"user one, assistant (a), tool a " + request.NoResult,
	},
	"two calls with one id": {
		`{"role":"user","content":"one"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"A"},{"role":"user","content":"two"}`,
		`{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"},{"type":"text","text":"two"}]}`,
		"user one, assistant (a a_1_1), tool a A, tool a_1_1 " + request.NoResult + ", user two",
	},
	"an empty answer": {
		`{"role":"user","content":"one"},{"role":"assistant","content":null},{"role":"user","content":"two"}`,
		`{"role":"user","content":"one"},{"role":"assistant","content":[]},{"role":"user","content":"two"}`,
		"user one, assistant hidden, user two",
	},
}

// A history that breaks the log's rules is forwarded as it came, for the upstream to judge, and recorded as far as it can
// be. When it has grown, it is the same conversation, and each message is there once.
func TestABrokenHistoryIsForwardedAndRecorded(t *testing.T) {
	for name, test := range brokenHistories {
		for _, path := range []string{"/v1/chat/completions", "/v1/messages"} {
			t.Run(name+" "+path, func(t *testing.T) {
				history, model, answer, has := test.chat, "gpt", chatStream, test.log
				if path == "/v1/messages" {
					history, model, answer = test.messages, "claude", messagesStream
					if name == "an empty answer" {
						has = strings.Replace(has, " hidden", "", 1) // a list without blocks is an answer
					}
				}
				u := newUpstream(t, stream(answer), stream(answer))
				g := newGateway(t, u)
				send := func(messages string) *http.Response {
					body := fmt.Sprintf(`{"model":"%s","max_tokens":9,"stream":true,"messages":[%s]}`, model, messages)
					response, got := g.post(t, path, body)
					if got != answer {
						t.Fatalf("got %d %s", response.StatusCode, got)
					}
					if sent := (<-u.requests).body; !strings.Contains(sent, `"messages":[`+messages+`]`) {
						t.Errorf("the upstream got %s", sent)
					}
					return response
				}
				response := send(history)
				const said = "assistant Grüß Gott"
				if got, want := shownLog(g.entries(t, response)), has+", "+said; got != want {
					t.Errorf("the log has\n%s, want\n%s", got, want)
				}
				grown := send(history + `,{"role":"assistant","content":"Grüß Gott"},{"role":"user","content":"last"}`)
				if got, want := shownLog(g.entries(t, grown)), has+", "+said+", user last, "+said; got != want || grown.Header.Get("X-Conversation-ID") != response.Header.Get("X-Conversation-ID") {
					t.Errorf("then the log has (by %s)\n%s, want\n%s", grown.Header.Get("X-Continuo-Matched"), got, want)
				}
			})
		}
	}
}

// A request that is built from such a history is refused in the endpoint's form.
func TestARequestIsNotBuiltFromABrokenHistory(t *testing.T) {
	for name, test := range brokenHistories {
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"model":"claude","messages":[` + test.chat + `]}`,
			"/v1/messages":         `{"model":"gpt","max_tokens":9,"messages":[` + test.messages + `]}`,
		} {
			if name == "two results of a call" || name == "an empty answer" && path == "/v1/messages" {
				continue // the second one says nothing new
			}
			g := newGateway(t, newUpstream(t))
			response, got := g.post(t, path, body)
			if response.StatusCode != http.StatusBadRequest || !strings.Contains(got, "invalid_request_error") || !strings.Contains(got, "messages[") && !strings.Contains(got, "call") {
				t.Errorf("%s, %s: got %d %s", name, path, response.StatusCode, got)
			}
		}
	}
}

// shownLog is a log in short.
func shownLog(entries []continuo.Entry) string {
	var lines []string
	for i := range entries {
		e := &entries[i]
		words := []string{string(e.Role)}
		if e.ToolCallID != "" {
			words = append(words, e.ToolCallID)
		}
		if text := e.Content.String(); text != "" {
			words = append(words, text)
		}
		if e.HasCalls() {
			var ids []string
			for _, call := range e.ToolCalls {
				ids = append(ids, call.ID)
			}
			words = append(words, "("+strings.Join(ids, " ")+")")
		}
		if e.Hidden {
			words = append(words, "hidden")
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, ", ")
}
