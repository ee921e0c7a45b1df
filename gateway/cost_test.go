package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/continuo-log/continuo/store/storetest"
)

// A forwarded request makes one commit before the upstream is asked, which has the conversation where it is new, the
// input, the request's body and the beginning of its turn, and one at the end of the answer.
func TestWhatARequestCosts(t *testing.T) {
	const (
		first = `{"model":"gpt","messages":[{"role":"user","content":"one"}]}`
		next  = `{"model":"gpt","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"Yes."},{"role":"user","content":"two"}]}`
		third = `{"model":"gpt","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"Yes."},{"role":"user","content":"two"},` +
			`{"role":"assistant","content":"Yes."},{"role":"user","content":"three"}]}`
		answer = `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`
	)
	store := &storetest.Calls{Store: storetest.NewMemory()}
	var before []string
	answered := func(w http.ResponseWriter, _ *http.Request) {
		before = store.Take()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}
	g := newGatewayOver(t, newUpstream(t, slices.Repeat([]http.HandlerFunc{answered}, 6)...), store)
	for _, test := range []struct {
		name, body    string
		header        []string
		before, after []string
	}{
		{name: "a new conversation", body: first, before: []string{"Prefixes", "Append"}},
		{name: "the next message", body: next, before: []string{"Prefixes", "Append"}},
		{name: "the message after", body: third, before: []string{"Prefixes", "Append"}},
		{
			name: "a new conversation with a key", body: first, header: []string{"X-Conversation-ID", "mine"},
			before: []string{"ConversationByKey", "Prefixes", "Append"},
		},
		{
			name: "a new session", body: first, header: []string{"X-Session-Id", "s1", "User-Agent", "opencode/1"},
			before: []string{"Prefixes", "ConversationByKey", "Prefixes", "Append"},
		},
		{
			name: "the next message of the session", body: next, header: []string{"X-Session-Id", "s1", "User-Agent", "opencode/1"},
			before: []string{"Prefixes", "Append"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			store.Take()
			response, body := g.post(t, "/v1/chat/completions", test.body, test.header...)
			if response.StatusCode != http.StatusOK || body != answer {
				t.Fatalf("%d %s", response.StatusCode, body)
			}
			if !slices.Equal(before, test.before) {
				t.Errorf("before the upstream is asked: %q, want %q", before, test.before)
			}
			if after := store.Take(); !slices.Equal(after, []string{"Append"}) {
				t.Errorf("afterwards: %q, want one Append", after)
			}
		})
	}
}

// Of requests that begin the same conversation at once, one creates it.
func TestFirstRequestsAtOnce(t *testing.T) {
	answered := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`))
	}
	const clients = 4
	g := newGateway(t, newUpstream(t, slices.Repeat([]http.HandlerFunc{answered}, clients)...))
	ids := make([]string, clients)
	var sent sync.WaitGroup
	for i := range clients {
		sent.Go(func() {
			body := fmt.Sprintf(`{"model":"gpt","messages":[{"role":"user","content":"question %d"}]}`, i)
			response, answer := g.post(t, "/v1/chat/completions", body, "X-Conversation-ID", "mine")
			if response.StatusCode != http.StatusOK {
				t.Errorf("%d %s", response.StatusCode, answer)
			}
			ids[i] = response.Header.Get("X-Conversation-ID")
		})
	}
	sent.Wait()
	if one := slices.Compact(slices.Sorted(slices.Values(ids))); len(one) != 1 {
		t.Errorf("there are the conversations %q", one)
	}
}
