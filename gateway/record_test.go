package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway"
)

// What is not to be recorded is forwarded as it came, and no conversation has it.
func TestRecord(t *testing.T) {
	const chat, unstored = `{"model":"openai-chat","stream":true,"messages":[{"role":"user","content":"x"}]}`,
		`{"model":"openai-chat","stream":true,"store":false,"messages":[{"role":"user","content":"x"}]}`
	const messages = `{"model":"anthropic-messages","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}`
	for _, test := range []struct {
		name, path, body, stream string
		record                   gateway.Record
		recorded                 bool
	}{
		{"all", "/v1/chat/completions", unstored, chatStream, gateway.RecordAll, true},
		{"stored", "/v1/chat/completions", chat, chatStream, gateway.RecordStored, true},
		{"stored, store false", "/v1/chat/completions", unstored, chatStream, gateway.RecordStored, false},
		{"off", "/v1/chat/completions", chat, chatStream, gateway.RecordOff, false},
		{"off, Anthropic", "/v1/messages", messages, messagesStream, gateway.RecordOff, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := newUpstream(t, stream(test.stream))
			g := newFieldGateway(t, u.Server, gateway.Options{Record: test.record})
			response, got := g.post(t, test.path, test.body)
			sent := (<-u.requests).body
			model := strings.SplitN(test.body, `"`, 5)[3]
			if response.StatusCode != http.StatusOK || got != test.stream || sent != strings.Replace(test.body, model, "m", 1) {
				t.Errorf("got %d %q; the upstream got %s", response.StatusCode, got, sent)
			}
			if recorded := response.Header.Get("X-Conversation-ID") != ""; recorded != test.recorded {
				t.Errorf("recorded %v", recorded)
			}
			if count := g.conversations(t); (count > 0) != test.recorded {
				t.Errorf("there are %d conversations", count)
			}
		})
	}
}

// conversations counts those of the log.
func (g *testGateway) conversations(t *testing.T) int {
	t.Helper()
	page, err := g.log.Conversations(t.Context(), continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return len(page)
}

// What cannot be forwarded without a record is refused, and a refusal of the upstream is passed on.
func TestWhatNeedsARecordIsRefusedWithoutOne(t *testing.T) {
	for name, test := range map[string]struct{ path, body, header, want string }{
		"another protocol":     {"/v1/chat/completions", `{"model":"gemini","messages":[{"role":"user","content":"x"}]}`, "", "model"},
		"a named conversation": {"/v1/chat/completions", `{"model":"openai-chat","messages":[{"role":"user","content":"x"}]}`, "k", "X-Conversation-ID"},
		"a stored response":    {"/v1/responses", `{"model":"openai-responses","input":"x"}`, "", "store"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newFieldGateway(t, newUpstream(t).Server, gateway.Options{Record: gateway.RecordOff})
			response, got := g.post(t, test.path, test.body, "X-Conversation-ID", test.header)
			if response.StatusCode != http.StatusBadRequest || !strings.Contains(got, `"param":"`+test.want+`"`) || !strings.Contains(got, "gateway.record") {
				t.Errorf("got %d %s", response.StatusCode, got)
			}
		})
	}
	u, newest := refusingUpstream(t)
	g := newFieldGateway(t, u, gateway.Options{Record: gateway.RecordOff})
	response, got := g.post(t, "/v1/messages", `{"model":"anthropic-messages","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`)
	if newest(); response.StatusCode != http.StatusBadRequest || got != `{"error":{"message":"not today"}}` {
		t.Errorf("got %d %s", response.StatusCode, got)
	}
}
