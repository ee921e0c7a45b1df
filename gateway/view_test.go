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
