package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// planOf is the plan of an answer's request, as it is shown again.
func (g *testGateway) planOf(t *testing.T, answer *continuo.Entry) *window.Plan {
	t.Helper()
	conversation, err := g.log.Conversation(t.Context(), answer.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := turn.Replay(t.Context(), g.log, conversation, answer.Round, turn.ReadWindowView)
	if err != nil || !same {
		t.Fatalf("shown again: %v, same %v", err, same)
	}
	return again.Plan
}

// A client that sends its whole history is shown to the model through the view that the header names, with its
// instructions and tools.
func TestAViewDecidesForAClientThatSendsItsHistory(t *testing.T) {
	u := newUpstream(t, stream(chatStream))
	g := newGateway(t, u)
	var history []string
	for i := range 120 {
		history = append(history, fmt.Sprintf(`{"role":%q,"content":"m%d"}`, []string{"user", "assistant"}[i%2], i))
	}
	body := `{"model":"gpt","seed":7,"messages":[{"role":"system","content":"Be brief."},` + strings.Join(history, ",") + `,{"role":"user","content":"now"}],` +
		`"tools":[{"type":"function","function":{"name":"f","strict":true}}]}`
	response, got := g.post(t, "/v1/chat/completions", body, "X-Continuo-View", "continuity")
	if response.StatusCode != http.StatusOK {
		t.Fatalf("got %d %s", response.StatusCode, got)
	}
	sent := (<-u.requests).body
	for _, want := range []string{`"role":"system","content":"Be brief."`, `"seed":7`, `"strict":true`, `"content":"now"`} {
		if !strings.Contains(sent, want) {
			t.Errorf("the upstream got %s, without %s", sent, want)
		}
	}
	entries := g.entries(t, response)
	answer := &entries[len(entries)-1]
	if strings.Contains(sent, `"m1"`) || answer.Round.View != "continuity" || len(entries) != 122 {
		t.Errorf("the view %s shows %s of %d entries", answer.Round.View, sent, len(entries))
	}
	g.checkReplay(t, answer, sent)
}

// The client's messages alone are sent where the header says so, also in a conversation that has more; the plan says what
// the client left out.
func TestTheClientDecides(t *testing.T) {
	u := newUpstream(t, stream(chatStream), stream(chatStream))
	g := newGateway(t, u)
	first := `{"model":"gpt","stream":true,"messages":[{"role":"user","content":"one"}]}`
	_, _ = g.post(t, "/v1/chat/completions", first, "X-Conversation-ID", "k")
	<-u.requests
	response, got := g.post(t, "/v1/chat/completions", `{"model":"gpt","stream":true,"messages":[{"role":"user","content":"two"}]}`, "X-Conversation-ID", "k", "X-Continuo-View", "client")
	if sent := (<-u.requests).body; got != chatStream || strings.Contains(sent, "one") {
		t.Errorf("the upstream got %s, and the client %s", sent, got)
	}
	entries := g.entries(t, response)
	plan := g.planOf(t, &entries[len(entries)-1])
	if len(entries) != 4 || len(plan.Items) != 2 || plan.Items[0].Through != 2 || plan.Items[0].Reason != window.ReasonDroppedByClient || plan.Items[1].Seq != 3 || plan.Items[1].Verdict != window.Client {
		t.Errorf("%d entries, the plan says %+v", len(entries), plan.Items)
	}
	whole := g.planOf(t, &entries[1])
	if len(whole.Items) != 1 || whole.Items[0].Verdict != window.Client {
		t.Errorf("the first plan says %+v", whole.Items)
	}
}

func TestUnknownViewsAreRefused(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"gpt","messages":[{"role":"user","content":"x"}]}`, "/v1/responses": `{"model":"gpt","input":"x"}`,
	} {
		response, got := g.post(t, path, body, "X-Continuo-View", "everything")
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(got, "continuity") || !strings.Contains(got, `"param":"X-Continuo-View"`) {
			t.Errorf("%s: got %d %s", path, response.StatusCode, got)
		}
	}
	response, got := g.post(t, "/v1/responses", `{"model":"gpt","input":"x"}`, "X-Continuo-View", "client")
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("client without a history: got %d %s", response.StatusCode, got)
	}
}

// Where a view decides which messages are shown, Anthropic's system prompt and tools are sent as they came, with the
// client's cache marks; with ours there are never more than four.
func TestCacheMarksSurviveAView(t *testing.T) {
	const (
		system = `[{"type":"text","text":"Be brief."},{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral","ttl":"1h"}}]`
		marked = `{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral","ttl":"1h"}}`
		bare   = `{"name":"g","input_schema":{"type":"object"}}`
		plain  = `[{"type":"text","text":"Be brief."}]`
		more   = `[{"type":"text","text":"A","cache_control":{"type":"ephemeral"}},{"type":"text","text":"B","cache_control":{"type":"ephemeral"}},{"type":"text","text":"C","cache_control":{"type":"ephemeral"}}]`
	)
	for name, test := range map[string]struct {
		system, tools string
		marks         int
	}{
		"marks in both": {system, bare + "," + marked, 3}, "marks in the system prompt": {system, bare, 2}, "no marks": {plain, bare, 3},
		"as many as there may be": {more, marked, 4}, "nothing to mark": {`"Be brief."`, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, stream(messagesStream))
			g := newGateway(t, u)
			body := `{"model":"claude","max_tokens":9,"stream":true,"system":` + test.system + `,"tools":[` + test.tools + `],"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}`
			response, got := g.post(t, "/v1/messages", body, "X-Continuo-View", "continuity")
			if response.StatusCode != http.StatusOK {
				t.Fatalf("got %d %s", response.StatusCode, got)
			}
			sent := (<-u.requests).body
			for _, want := range []string{test.system, test.tools} {
				want = strings.TrimSuffix(strings.TrimPrefix(want, "["), "]")
				if !strings.Contains(want, "cache_control") {
					continue // ours are added
				}
				if !strings.Contains(sent, want) {
					t.Errorf("the upstream got %s, without %s", sent, want)
				}
			}
			if count := strings.Count(sent, `"cache_control"`); count != test.marks {
				t.Errorf("%d marks, want %d: %s", count, test.marks, sent)
			}
			entries := g.entries(t, response)
			g.checkReplay(t, &entries[len(entries)-1], sent)
		})
	}
}
