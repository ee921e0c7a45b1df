package server

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
)

// A key may spend a second's worth at once, and then as much as comes back; another's is its own.
func TestPaces(t *testing.T) {
	p, now := &rateLimits{perSecond: 4}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	passed := func(key string, asked int) (passed int) {
		for range asked {
			if p.check(key, now) == nil {
				passed++
			}
		}
		return passed
	}
	if n := passed("a", 10); n != 4 {
		t.Errorf("%d of 10 at once passed", n)
	}
	if n := passed("b", 10); n != 4 {
		t.Errorf("of another key %d of 10 passed", n)
	}
	now = now.Add(500 * time.Millisecond) // what was refused was not counted
	if n := passed("a", 10); n != 2 {
		t.Errorf("half a second later %d of 10 passed", n)
	}
	if n := passed("", 10); n != 10 {
		t.Errorf("without a key %d of 10 passed", n)
	}
	if p = (&rateLimits{}); passed("a", 1000) != 1000 {
		t.Error("without a bound requests were refused")
	}
}

// Silent keys are forgotten, busy ones never.
func TestPacesAreForgotten(t *testing.T) {
	p, now := &rateLimits{perSecond: 1}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range maxLimiters {
		_ = p.check(fmt.Sprint("silent", i), now)
	}
	now = now.Add(time.Second)
	_ = p.check("busy", now)
	if len(p.byKey) != 1 {
		t.Errorf("%d limiters are kept", len(p.byKey))
	}
	for i := range 2 * maxLimiters {
		_ = p.check(fmt.Sprint("new", i), now)
	}
	if p.check("busy", now) == nil {
		t.Error("a busy key was forgotten")
	}
}

func TestRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // all requests come within a second
		keys := newKeyring(t)
		_, shown := keys.newKey("default")
		_, other := keys.newKey("default")
		handler := newKeyedServer(t, keys, Options{RequestsPerSecond: 1})
		ask(t, handler, "GET", "/api/models", "", as(shown)...).into(200, &struct{}{})
		refused := ask(t, handler, "GET", "/api/models", "", as(shown)...)
		if body := refused.failed(429, "rate_limited", ""); body.Error.Type != "rate_limit_error" || refused.header.Get("Retry-After") != "1" {
			t.Errorf("type %s, Retry-After %q", body.Error.Type, refused.header.Get("Retry-After"))
		}
		ask(t, handler, "POST", "/chat", `{"message": "hello"}`, as(shown)...).failed(429, "rate_limited", "")
		ask(t, handler, "GET", "/api/models", "", as(other)...).into(200, &struct{}{})
		ask(t, handler, "GET", "/healthz", "").into(200, &struct{}{})
	})
}

// A project that has all the turns that it may have is refused another one, and begins nothing; others do not
// notice.
func TestTooManyTurns(t *testing.T) {
	g := newGate()
	options := withModel(g.model())
	options.MaxTurns = 2
	keys := newKeyring(t)
	_, shown := keys.newKey("busy")
	_, other := keys.newKey("other")
	handler := New(engineOver(t, keys.Store, options), Options{Keys: auth.NewChecker(keys, auth.Options{})})
	begun := make(chan *reply, 3)
	begin := func(session string, header []string) {
		go func() {
			begun <- ask(t, handler, "POST", "/chat", `{"session_id": "`+session+`", "message": "go"}`, header...)
		}()
		within(t, "the model's first word", g.reached)
	}
	begin("one", as(shown))
	begin("two", as(shown))
	for _, header := range [][]string{nil, {"Idempotency-Key", "k"}} {
		refused := ask(t, handler, "POST", "/chat", `{"session_id": "three", "message": "go"}`, append(header, as(shown)...)...)
		if body := refused.failed(429, "too_many_turns", ""); body.Error.Type != "rate_limit_error" || refused.header.Get("Retry-After") != "1" {
			t.Errorf("type %s, Retry-After %q", body.Error.Type, refused.header.Get("Retry-After"))
		}
		if header == nil {
			ask(t, handler, "GET", "/api/conversations/three", "", as(shown)...).failed(http.StatusNotFound, "not_found", "")
		}
	}
	begin("one", as(other))
	for range 3 {
		g.open <- struct{}{}
	}
	for range 3 {
		within(t, "an answer", begun).into(200, &struct{}{})
	}
	close(g.open)
	ask(t, handler, "POST", "/chat", `{"session_id": "three", "message": "go"}`, append([]string{"Idempotency-Key", "k"}, as(shown)...)...).into(200, &struct{}{})
}

// A client that sends its next message when it has the answer to the last is never refused.
func TestOneTurnAfterTheOther(t *testing.T) {
	handler := New(engineOver(t, storetest.NewMemory(), engine.Options{MaxTurns: 1}), Options{})
	for i := range 100 {
		sendMessage(t, handler, fmt.Sprint("s", i%3), "next")
	}
}
