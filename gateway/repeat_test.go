package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// whole answers with a chat completion that is not streamed.
func whole(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, text)
	}
}

var created = regexp.MustCompile(`"created":\d+`)

// timeless returns an answer without the time at which it was written, which those that are built from the log have.
func timeless(answer string) string { return created.ReplaceAllString(answer, "") }

// repeatCases are requests that are sent again, after others before them.
var repeatCases = map[string]struct {
	path   string
	before []string // requests
	body   string
	header []string // of all
	answer http.HandlerFunc
}{
	"a new conversation": {path: "/v1/chat/completions", body: `{"model":"gpt","messages":[{"role":"user","content":"one"}]}`, answer: whole("Yes.")},
	"a stream":           {path: "/v1/chat/completions", body: `{"model":"gpt","stream":true,"messages":[{"role":"user","content":"one"}]}`, answer: stream(chatStream)},
	"Anthropic's":        {path: "/v1/messages", body: `{"model":"claude","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"one"}]}`, answer: stream(messagesStream)},
	"the next message": {
		path: "/v1/chat/completions", before: []string{`{"model":"gpt","messages":[{"role":"user","content":"one"}]}`}, answer: whole("Yes."),
		body: `{"model":"gpt","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"Yes."},{"role":"user","content":"two"}]}`,
	},
	"a rewritten past": {
		path: "/v1/chat/completions", answer: whole("Yes."),
		before: []string{
			`{"model":"gpt","messages":[{"role":"user","content":"one"}]}`,
			`{"model":"gpt","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"Yes."},{"role":"user","content":"two"}]}`,
		},
		body: `{"model":"gpt","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"Yes."},{"role":"user","content":"other"}]}`,
	},
	"a named conversation": {
		path: "/v1/chat/completions", header: []string{"X-Conversation-ID", "mine"}, answer: whole("Yes."),
		body: `{"model":"gpt","messages":[{"role":"user","content":"one"}]}`,
	},
	"a history that the server keeps": {
		path: "/v1/chat/completions", header: []string{"X-Conversation-ID", "mine"}, answer: stream(chatStream),
		before: []string{`{"model":"gpt","messages":[{"role":"user","content":"one"}]}`},
		body:   `{"model":"gpt","messages":[{"role":"user","content":"two"}]}`,
	},
	"a session": {
		path: "/v1/chat/completions", header: []string{"X-Session-Id", "s", "User-Agent", "opencode/1"}, answer: whole("Yes."),
		body: `{"model":"gpt","messages":[{"role":"user","content":"one"}]}`,
	},
	"a response":          {path: "/v1/responses", body: `{"model":"gpt","input":"one"}`, answer: stream(chatStream)},
	"a streamed response": {path: "/v1/responses", body: `{"model":"gpt","input":"one","stream":true}`, answer: stream(chatStream)},
}

// A request with a key that is sent again is one turn: the upstream is asked once, the log has the message once, and the answer
// is the same, in another process too.
func TestARepeatedRequestIsOneTurn(t *testing.T) {
	for name, test := range repeatCases {
		for how, header := range map[string][2][]string{
			"by key":         {{"Idempotency-Key", "k"}, {"Idempotency-Key", "k"}},
			"by the library": {{"X-Stainless-Retry-Count", "0"}, {"X-Stainless-Retry-Count", "1"}},
		} {
			if how == "by the library" && (name == "a rewritten past" || name == "a history that the server keeps" || strings.HasSuffix(name, "response")) {
				continue // nothing but the key tells it from another request
			}
			t.Run(name+", "+how, func(t *testing.T) {
				store := storetest.NewMemory()
				u := newUpstream(t)
				u.answers = make(chan http.HandlerFunc, 16)
				g := newGatewayOver(t, u, store)
				for _, body := range test.before {
					u.answers <- whole("Yes.")
					if strings.Contains(test.path, "responses") || len(test.header) > 0 && test.header[1] == "mine" {
						<-u.answers
						u.answers <- test.answer
					}
					g.post(t, test.path, body, test.header...)
				}
				u.answers <- test.answer
				first, answer := g.post(t, test.path, test.body, append(header[0][:2:2], test.header...)...)
				if first.StatusCode != http.StatusOK {
					t.Fatalf("%d %s", first.StatusCode, answer)
				}
				entries := g.entries(t, first)
				for _, again := range []*testGateway{g, newGatewayOver(t, u, store)} {
					response, repeated := again.post(t, test.path, test.body, append(header[1][:2:2], test.header...)...)
					if response.StatusCode != http.StatusOK || timeless(repeated) != timeless(answer) && !strings.Contains(test.path, "responses") {
						t.Errorf("the repeated request: %d\n%s\nwant\n%s", response.StatusCode, repeated, answer)
					}
					for _, name := range []string{"X-Conversation-ID", "X-Continuo-Turn", "Content-Type"} {
						if response.Header.Get(name) != first.Header.Get(name) {
							t.Errorf("%s is %q, was %q", name, response.Header.Get(name), first.Header.Get(name))
						}
					}
				}
				if now := g.entries(t, first); len(now) != len(entries) {
					t.Errorf("the log has %d entries, had %d", len(now), len(entries))
				}
				if asked := len(u.requests); asked != len(test.before)+1 {
					t.Errorf("the upstream was asked %d times", asked)
				}
			})
		}
	}
}

// A key belongs to one request, and another key begins another turn.
func TestAKeyBelongsToOneRequest(t *testing.T) {
	g := newGateway(t, newUpstream(t, whole("Yes."), whole("No.")))
	const body = `{"model":"gpt","messages":[{"role":"user","content":"one"}]}`
	first, _ := g.post(t, "/v1/chat/completions", body, "Idempotency-Key", "k")
	if response, answer := g.post(t, "/v1/chat/completions", strings.Replace(body, "one", "other", 1), "Idempotency-Key", "k"); response.StatusCode != http.StatusConflict {
		t.Errorf("another request with the key: %d %s", response.StatusCode, answer)
	}
	second, answer := g.post(t, "/v1/chat/completions", body, "Idempotency-Key", "l")
	if second.StatusCode != http.StatusOK || !strings.Contains(answer, "No.") || second.Header.Get("X-Conversation-ID") == first.Header.Get("X-Conversation-ID") {
		t.Errorf("the request with another key: %d %s", second.StatusCode, answer)
	}
	if response, answer := g.post(t, "/v1/chat/completions", body, "Idempotency-Key", "two words"); response.StatusCode != http.StatusBadRequest {
		t.Errorf("a bad key: %d %s", response.StatusCode, answer)
	}
}

// Replicas that get one request at the same time begin one turn, for a new conversation, a known one and a fork.
func TestOneRequestAtTwoReplicas(t *testing.T) {
	for name, test := range repeatCases {
		if strings.Contains(test.path, "responses") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			store := storetest.NewMemory()
			u := newUpstream(t)
			u.answers = make(chan http.HandlerFunc, 16)
			replicas := []*testGateway{newGatewayOver(t, u, store), newGatewayOver(t, u, store)}
			for _, body := range test.before {
				u.answers <- whole("Yes.")
				if len(test.header) > 0 && test.header[1] == "mine" {
					<-u.answers
					u.answers <- test.answer
				}
				replicas[0].post(t, test.path, body, test.header...)
			}
			u.answers <- test.answer
			var sent sync.WaitGroup
			answers, turns := make([]string, 6), make([]string, 6)
			for i := range answers {
				sent.Go(func() {
					response, answer := replicas[i%2].post(t, test.path, test.body, append([]string{"Idempotency-Key", "k"}, test.header...)...)
					answers[i], turns[i] = answer, response.Header.Get("X-Continuo-Turn")
				})
			}
			sent.Wait()
			for i := range answers {
				if timeless(answers[i]) != timeless(answers[0]) || turns[i] != turns[0] || turns[i] == "" {
					t.Errorf("request %d: turn %q, answer %q; want %q, %q", i, turns[i], answers[i], turns[0], answers[0])
				}
			}
			if asked := len(u.requests); asked != len(test.before)+1 {
				t.Errorf("the upstream was asked %d times", asked)
			}
			if _, err := replicas[0].log.Conversations(t.Context(), continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Limit: 9}); err != nil {
				t.Error(err)
			}
		})
	}
}

// hookedStore calls a function after a number of look-ups.
type hookedStore struct {
	prefixedStore
	after int
	next  func()
}

func (s *hookedStore) Prefixes(ctx context.Context, query continuo.PrefixQuery) ([]continuo.Prefix, []continuo.Conversation, error) {
	rows, conversations, err := s.prefixedStore.Prefixes(ctx, query)
	if s.after--; s.after == 0 {
		s.next()
	}
	return rows, conversations, err
}

// A session that begins with another one's history is a fork of it. Two tries of its first request make one, also where the
// other try makes it after this one has looked for it.
func TestAForkedSessionThatBeginsMeanwhile(t *testing.T) {
	const (
		one = `{"model":"gpt","messages":[{"role":"user","content":"one"}]}`
		two = `{"model":"gpt","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"Yes."},{"role":"user","content":"two"}]}`
	)
	store := storetest.NewMemory()
	u := newUpstream(t, whole("Yes."), whole("So."))
	other := newGatewayOver(t, u, store)
	other.post(t, "/v1/chat/completions", one)
	header := []string{"X-Session-Id", "s", "User-Agent", "opencode/1", "Idempotency-Key", "k"}
	var first *http.Response
	hooked := &hookedStore{prefixedStore: store, after: 2, next: func() { first, _ = other.post(t, "/v1/chat/completions", two, header...) }}
	second, answer := newGatewayOver(t, u, hooked).post(t, "/v1/chat/completions", two, header...)
	if second.StatusCode != http.StatusOK || !strings.Contains(answer, "So.") || second.Header.Get("X-Continuo-Turn") != first.Header.Get("X-Continuo-Turn") {
		t.Errorf("the second try: %d %s, turn %s, not %s", second.StatusCode, answer, second.Header.Get("X-Continuo-Turn"), first.Header.Get("X-Continuo-Turn"))
	}
	if asked := len(u.requests); asked != 2 {
		t.Errorf("the upstream was asked %d times", asked)
	}
}
