package e2e

import (
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// TestRetries counts the requests that the upstream got.
func TestRetries(t *testing.T) {
	t.Parallel()
	upstream := startMock(t)
	s := serve(t, bothModels(upstream.url, "retries: 2", "breaker_failures: 0"))
	for _, test := range []struct {
		message  string
		requests int
		text     string // of the answer, or
		says     string // of the error
	}{
		{"status: 429 once", 2, "Now it works.", ""},
		{"status: 503 once", 2, "Now it works.", ""},
		{"status: 500", 3, "", "boom (tried 3 times)"},
		{"fault: hang-up", 3, "", "(tried 3 times)"},
		{"fault: malformed body", 3, "", "(tried 3 times)"},
		{"status: 400 length", 1, "", "maximum context length is 8192 tokens"},
		{"fault: cut", 1, "", "the connection ended before the answer did"}, // it had shown something
	} {
		for _, model := range protocols {
			t.Run(test.message+" "+model, func(t *testing.T) {
				t.Parallel()
				session := strings.NewReplacer(": ", "-", " ", "-").Replace("retry-" + test.message + "-" + model)
				got := s.ask(t, session, model, test.message+" ("+session+")", true)
				requests := upstream.requests(t, session)
				if len(requests) != test.requests {
					t.Errorf("the upstream got %d requests, want %d", len(requests), test.requests)
				}
				switch {
				case test.text != "" && (got.answer.Error != nil || got.text != test.text):
					t.Errorf("got %+v, %+v; want %q", got, got.answer.Error, test.text)
				case test.text == "" && (got.answer.Error == nil || !strings.Contains(got.answer.Error.Message, test.says)):
					t.Errorf("got %+v, %+v; want an error that says %q", got, got.answer.Error, test.says)
				}
				if len(requests) == 2 && test.message == "status: 429 once" && between(requests[0], requests[1]) < time.Second {
					t.Errorf("it was asked again after %v, it had asked to wait 1s", between(requests[0], requests[1]))
				}
				if entries := s.entries(t, session); len(entries) != 2 {
					t.Errorf("the log has %d entries, want one question and one answer", len(entries))
				}
			})
		}
	}
}

// TestLongRetryAfter: a provider that asks to wait longer than a request waits is not asked again.
func TestLongRetryAfter(t *testing.T) {
	upstream := startMock(t)
	s := serve(t, bothModels(upstream.url, "retries: 2", "wait_timeout: 500ms"))
	got := s.ask(t, "s", "chat", "status: 429", false)
	if failure := got.answer.Error; got.status != 429 || failure == nil || !strings.Contains(failure.Message, "a request waits for at most 500ms until the limit has passed (turn.wait_timeout)") {
		t.Errorf("got %+v, %+v", got, failure)
	}
	if n := len(upstream.requests(t, "status: 429")); n != 1 {
		t.Errorf("the upstream got %d requests, want 1", n)
	}
}

// TestFallback: when a model failed after its retries, one of the other protocol answers; when it fails
// again and again, its breaker keeps it from being asked.
func TestFallback(t *testing.T) {
	t.Parallel()
	upstream := startMock(t)
	other := map[string]string{"chat": "messages", "messages": "responses", "responses": "gemini", "gemini": "chat"}
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "model: main\nmodels:\n"+
				modelSettings("main", protocol, upstream.url, "fallback: spare")+
				modelSettings("spare", other[protocol], upstream.url)+
				turnSettings("retries: 1", "breaker_failures: 2", "breaker_cooldown: 1h"))
			for turn, want := range []string{"mock-main mock-main mock-spare", "mock-main mock-main mock-spare", "mock-spare"} {
				session := protocol + "-" + string(rune('a'+turn))
				got := s.ask(t, session, "main", "status: 500 ("+session+")", true)
				if got.answer.Error != nil || got.text != "The spare answers." || got.answer.Response != got.text {
					t.Errorf("turn %d: got %+v, %+v", turn, got, got.answer.Error)
				}
				var names []string
				for _, request := range upstream.requests(t, session) {
					names = append(names, request.model())
				}
				if got := strings.Join(names, " "); got != want {
					t.Errorf("turn %d: asked %q, want %q", turn, got, want)
				}
				checkSpare(t, s.entries(t, session))
			}
		})
	}
}

// checkSpare: the log has one answer, and says who gave it.
func checkSpare(t *testing.T, entries []continuo.Entry) {
	t.Helper()
	if len(entries) != 2 || entries[1].Error != nil || entries[1].Round == nil || entries[1].Round.Model != "mock-spare" {
		t.Errorf("the log has %+v", entries)
	}
}

// TestBreaker: without a fallback, an open breaker answers at once.
func TestBreaker(t *testing.T) {
	t.Parallel()
	upstream := startMock(t)
	s := serve(t, bothModels(upstream.url, "retries: 0", "breaker_failures: 2", "breaker_cooldown: 1h"))
	for range 3 {
		s.ask(t, "s", "chat", "status: 500", true)
	}
	if n := len(upstream.requests(t, "status: 500")); n != 2 {
		t.Errorf("the upstream got %d requests, want 2", n)
	}
	got := s.ask(t, "s", "chat", "hello", false)
	if failure := got.answer.Error; got.status != 502 || failure == nil || failure.Reason != continuo.ReasonUpstream || !failure.Retryable {
		t.Errorf("got %+v, %+v", got, failure)
	}
	if other := s.ask(t, "s", "messages", "hello", false); other.answer.Error != nil {
		t.Errorf("the other model: %+v", other.answer.Error)
	}
}
