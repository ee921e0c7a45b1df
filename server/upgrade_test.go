package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// upgrades answers as if a hundred messages had come over the connection of every request: with the code of a refusal.
func upgrades(continuo.Scope) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 100 {
			if err := api.Allowed(r.Context()); err != nil {
				_, _ = io.WriteString(w, api.ProblemOf(err).Code)
				return
			}
		}
	})
}

// begin asks for another protocol, with headers given as pairs.
func begin(handler http.Handler, header ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, "http://localhost:8787/v1/responses", http.NoBody)
	request.Header.Set("Upgrade", "websocket")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// A page of another origin may not begin a connection that takes messages, although it may GET what it cannot read.
func TestUpgradesOfOtherOriginsAreRefused(t *testing.T) {
	handler := New(engineOver(t, newKeyring(t).Store, engine.Options{}), Options{Gateway: upgrades, GatewayPatterns: []string{"GET /v1/"}})
	for _, test := range []struct {
		header []string
		status int
	}{
		{[]string{"Origin", "http://evil.example"}, http.StatusForbidden},
		{[]string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{[]string{"Origin", "http://localhost:8787"}, http.StatusOK},
		{nil, http.StatusOK},
	} {
		if got := begin(handler, test.header...); got.Code != test.status {
			t.Errorf("%v: got %d %s, want %d", test.header, got.Code, got.Body, test.status)
		}
	}
}

// Messages over a connection count as requests of its key.
func TestMessagesCountForTheRateOfAKey(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("default")
	handler := newKeyedServer(t, keys, Options{RequestsPerSecond: 1, Gateway: upgrades, GatewayPatterns: []string{"GET /v1/"}})
	if got := begin(handler, as(shown)...); got.Body.String() != "rate_limited" {
		t.Errorf("the messages after the handshake: %d %s", got.Code, got.Body)
	}
}
