package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// The blocks of requests as agents send them, in the provider's own words, spacing and order of keys.
const (
	signedThinking   = `{"signature" : "EqQB\/CkYI+A==", "type":"thinking","thinking":"Look \u00fcber \"there\"." }`
	redactedThinking = `{"data":"EmwK","type":"redacted_thinking"}`
	unsignedThinking = `{"type":"thinking","thinking":"from another model","signature":""}`
	useBlock         = `{"type":"tool_use","id":"toolu_1","name":"look","input":{ "at" : 1.0 }}`
	resultMessage    = `{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"seen","cache_control":{"type":"ephemeral"}}]}`
	refusedThinking  = `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid ` + "`signature` in `thinking`" + ` block"}}`
)

// thinkingRequest is a request with some messages after the first one of the user.
func thinkingRequest(thinking string, messages ...string) string {
	return `{"model":"claude","max_tokens":2000,` + thinking + `"stream":true,"messages":[{"role":"user","content":"go"}, ` + strings.Join(messages, ", ") + `]}`
}

const thinkingAsked = `"thinking":{"type":"enabled","budget_tokens":1024},`

// sentTo is what the upstream gets of a request: the body, but for the model's name.
func sentTo(request string) string {
	return strings.Replace(request, `"model":"claude"`, `"model":"claude-4"`, 1)
}

func assistantSays(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, " , ") + `]}`
}

// Signed thinking reaches the upstream byte for byte, in loops that are finished and in open ones; thinking that the
// model has not signed is left out, and nothing else changes. In an open loop it is refused here where the model is to think.
func TestThinkingIsForwardedSigned(t *testing.T) {
	text := `{"type":"text","text":"So."}`
	user := `{"role":"user","content":"and now?"}`
	for name, test := range map[string]struct {
		request, want string
		left          string // what is left out
	}{
		"signed, in an open loop":        {request: thinkingRequest(thinkingAsked, assistantSays(signedThinking, redactedThinking, useBlock), resultMessage)},
		"signed, in a finished loop":     {request: thinkingRequest(thinkingAsked, assistantSays(signedThinking, useBlock), resultMessage, assistantSays(text), user)},
		"no thinking but the word of it": {request: thinkingRequest("", assistantSays(`{"type":"text","text":"the \"thinking\" of it"}`), user)},
		"unsigned and first": {
			request: thinkingRequest(thinkingAsked, assistantSays(unsignedThinking, text), user),
			want:    thinkingRequest(thinkingAsked, assistantSays(text), user), left: "1 block of thinking without a signature",
		},
		"unsigned, between and last": {
			request: thinkingRequest(thinkingAsked, assistantSays(text, unsignedThinking, useBlock, unsignedThinking), resultMessage, assistantSays(signedThinking, text), user),
			want:    thinkingRequest(thinkingAsked, assistantSays(text, useBlock), resultMessage, assistantSays(signedThinking, text), user), left: "2 blocks of thinking without a signature",
		},
		"a message of nothing else": {
			request: thinkingRequest(thinkingAsked, assistantSays(unsignedThinking), user), want: thinkingRequest(thinkingAsked, user), left: "1 block of thinking without a signature",
		},
		"unsigned, in an open loop, without thinking": {
			request: thinkingRequest("", assistantSays(unsignedThinking, useBlock), resultMessage), want: thinkingRequest("", assistantSays(useBlock), resultMessage),
			left: "1 block of thinking without a signature",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, stream(messagesStream))
			g := newGateway(t, u)
			response, got := g.post(t, "/v1/messages", test.request)
			if got != messagesStream {
				t.Fatalf("got %d %s", response.StatusCode, got)
			}
			want := test.want
			if want == "" {
				want = test.request
			}
			if sent := (<-u.requests).body; sent != sentTo(want) {
				t.Errorf("the upstream got\n%s, want\n%s", sent, sentTo(want))
			}
			g.checkLeftOut(t, response, test.left)
			entries := g.entries(t, response)
			g.checkReplay(t, &entries[len(entries)-1], sentTo(want))
		})
	}
}

// checkLeftOut checks that the header of an answer and its round name what the request lacks.
func (g *testGateway) checkLeftOut(t *testing.T, response *http.Response, want string) {
	t.Helper()
	entries := g.entries(t, response)
	if got := strings.Join(entries[len(entries)-1].Round.Omitted, ", "); got != want || response.Header.Get("X-Continuo-Omitted") != want {
		t.Errorf("the round says %q, the header %q, want %q", got, response.Header.Get("X-Continuo-Omitted"), want)
	}
}

func TestUnsignedThinkingInAnOpenLoopIsRefused(t *testing.T) {
	u := newUpstream(t)
	g := newGateway(t, u)
	response, got := g.post(t, "/v1/messages", thinkingRequest(thinkingAsked, assistantSays(unsignedThinking, useBlock), resultMessage))
	if response.StatusCode != http.StatusBadRequest || !strings.Contains(got, `"error":{"type":"invalid_request_error"`) || !strings.Contains(got, "messages[1].content[0] is thinking without a signature in a tool loop that is not finished") {
		t.Errorf("got %d %s", response.StatusCode, got)
	}
	if len(u.requests) != 0 {
		t.Error("the request reached the upstream")
	}
	all, err := g.log.Conversations(t.Context(), continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Kind: continuo.KindUser, Limit: 9})
	if err != nil || len(all) != 0 {
		t.Errorf("the log has %d conversations, %v", len(all), err)
	}
}

// A provider that signs nothing gets its own thinking back.
func TestAProviderThatSignsNothingGetsItsThinkingBack(t *testing.T) {
	unsigned := `{"type":"thinking","thinking":"Hm."}`
	answer := named(`{"type":"message_start","message":{"id":"m1","role":"assistant","content":[],"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}`) +
		named(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Hm."}}`) + named(`{"type":"content_block_stop","index":0}`) +
		named(`{"type":"content_block_start","index":1,"content_block":`+useBlock+`}`) + named(`{"type":"content_block_stop","index":1}`) +
		named(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`) + named(`{"type":"message_stop"}`)
	u := newUpstream(t, stream(answer), stream(messagesStream))
	g := newGateway(t, u)
	g.post(t, "/v1/messages", `{"model":"claude","max_tokens":2000,`+thinkingAsked+`"stream":true,"messages":[{"role":"user","content":"go"}]}`)
	<-u.requests
	request := thinkingRequest(thinkingAsked, assistantSays(unsigned, useBlock), resultMessage)
	if response, got := g.post(t, "/v1/messages", request); got != messagesStream {
		t.Fatalf("got %d %s", response.StatusCode, got)
	}
	if sent := (<-u.requests).body; sent != sentTo(request) {
		t.Errorf("the upstream got %s", sent)
	}
}

// After a refusal of a signature the request is sent once more, without the thinking of finished loops, and the round says
// so. A second refusal is the client's.
func TestARefusedSignatureIsRetriedOnce(t *testing.T) {
	user := `{"role":"user","content":"and now?"}`
	request := thinkingRequest(thinkingAsked, assistantSays(signedThinking, `{"type":"text","text":"So."}`), user, assistantSays(signedThinking, useBlock), resultMessage)
	bare := thinkingRequest(thinkingAsked, assistantSays(`{"type":"text","text":"So."}`), user, assistantSays(signedThinking, useBlock), resultMessage)
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, refusedThinking)
	}
	for name, second := range map[string]http.HandlerFunc{"accepted": stream(messagesStream), "refused again": refuse} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, refuse, second)
			g := newGateway(t, u)
			response, got := g.post(t, "/v1/messages", request)
			status, want := http.StatusOK, messagesStream
			if name == "refused again" {
				status, want = http.StatusBadRequest, refusedThinking
			}
			if response.StatusCode != status || got != want {
				t.Errorf("got %d %s", response.StatusCode, got)
			}
			first, again := <-u.requests, <-u.requests
			if first.body != sentTo(request) || again.body != sentTo(bare) || len(u.requests) != 0 {
				t.Errorf("the upstream got\n%s\n%s, and %d more", first.body, again.body, len(u.requests))
			}
			g.checkLeftOut(t, response, "1 block of thinking after a signature was refused")
			entries := g.entries(t, response)
			g.checkReplay(t, &entries[len(entries)-1], sentTo(bare))
			if len(entries) != 6 {
				t.Errorf("the log has %d entries", len(entries))
			}
		})
	}
}

// A refusal of a signature in a loop that is not finished cannot be repaired: it reaches the client as it came, at once.
func TestARefusedSignatureInAnOpenLoopIsTheClients(t *testing.T) {
	u := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, refusedThinking)
	})
	g := newGateway(t, u)
	response, got := g.post(t, "/v1/messages", thinkingRequest(thinkingAsked, assistantSays(signedThinking, useBlock), resultMessage))
	if response.StatusCode != http.StatusBadRequest || got != refusedThinking || len(u.requests) != 1 {
		t.Errorf("got %d %s, %d requests", response.StatusCode, got, len(u.requests))
	}
}

// A request that is built from the log is sent once more, too: without the thinking before the newest message, which its round
// says, and from which it can be shown again.
func TestARefusedSignatureOfABuiltRequestIsRetriedOnce(t *testing.T) {
	user := `{"role":"user","content":"and now?"}`
	request := thinkingRequest(thinkingAsked, assistantSays(signedThinking, `{"type":"text","text":"So."}`), user, assistantSays(signedThinking, useBlock), resultMessage)
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, refusedThinking)
	}
	for name, second := range map[string]http.HandlerFunc{"accepted": stream(messagesStream), "refused again": refuse} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, refuse, second)
			g := newGateway(t, u)
			response, got := g.post(t, "/v1/messages", request, "X-Continuo-View", "codex")
			if status := map[string]int{"accepted": http.StatusOK, "refused again": http.StatusBadRequest}[name]; response.StatusCode != status {
				t.Errorf("got %d %s", response.StatusCode, got)
			}
			first, again := <-u.requests, <-u.requests
			if strings.Count(first.body, `"thinking":"Look`) != 2 || strings.Count(again.body, `"thinking":"Look`) != 1 || !strings.Contains(again.body, "So.") || len(u.requests) != 0 {
				t.Errorf("the upstream got\n%s\n%s, and %d more", first.body, again.body, len(u.requests))
			}
			entries := g.entries(t, response)
			last := &entries[len(entries)-1]
			if !strings.Contains(strings.Join(last.Round.Omitted, ", "), "after a signature was refused") {
				t.Errorf("the round says %q", last.Round.Omitted)
			}
			g.checkReplay(t, last, again.body)
		})
	}
}
