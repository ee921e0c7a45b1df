package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
)

const (
	listed   = "https://app.example"
	unlisted = "https://evil.example"
)

// preflight sends what a browser sends before a request that is not simple.
func preflight(handler http.Handler, target, origin string) *http.Response {
	r := httptest.NewRequest(http.MethodOptions, "http://localhost:8787"+target, nil)
	r.Header.Set("Origin", origin)
	r.Header.Set("Access-Control-Request-Method", http.MethodPost)
	r.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

// wantNoCORS checks that a browser would keep an answer from the page.
func wantNoCORS(t *testing.T, header http.Header) {
	t.Helper()
	for name := range header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s: %s", name, header.Get(name))
		}
	}
}

func wantCORS(t *testing.T, header http.Header) {
	t.Helper()
	if header.Get("Access-Control-Allow-Origin") != listed || header.Get("Access-Control-Allow-Credentials") != "true" || header.Get("Vary") != "Origin" {
		t.Errorf("headers %v", header)
	}
}

// Off by default: a preflight is refused, and no answer has a header of CORS.
func TestCORSIsOffByDefault(t *testing.T) {
	handler := newServer(t)
	answer := preflight(handler, "/chat", listed)
	if answer.StatusCode != http.StatusMethodNotAllowed && answer.StatusCode != http.StatusForbidden {
		t.Errorf("preflight: status %d", answer.StatusCode)
	}
	wantNoCORS(t, answer.Header)
	wantNoCORS(t, ask(t, handler, "GET", "/api/conversations", "", "Origin", listed).header)
	ask(t, handler, "POST", "/api/conversations", "{}", "Origin", listed, "Sec-Fetch-Site", "cross-site").failed(403, "cross_origin", "Origin")
}

func TestCORS(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{Origins: []string{listed, "http://localhost:5173"}})
	for _, target := range []string{"/chat", "/api/conversations/x", "/v1/chat/completions", "/nowhere"} {
		answer := preflight(handler, target, listed)
		if answer.StatusCode != http.StatusNoContent || answer.Header.Get("Access-Control-Allow-Headers") != "authorization,content-type" ||
			!strings.Contains(answer.Header.Get("Access-Control-Allow-Methods"), "PATCH") {
			t.Errorf("preflight of %s: status %d, %v", target, answer.StatusCode, answer.Header)
		}
		wantCORS(t, answer.Header)
	}
	created := ask(t, handler, "POST", "/api/conversations", "{}", "Origin", listed, "Sec-Fetch-Site", "cross-site")
	created.into(201, &struct{}{})
	wantCORS(t, created.header)
	missing := ask(t, handler, "GET", "/api/conversations/x", "", "Origin", listed) // a page may read errors, too
	missing.failed(404, "not_found", "")
	wantCORS(t, missing.header)

	for _, origin := range []string{unlisted, "null", listed + ".evil.example", "http://app.example", "http://localhost:5174"} {
		wantNoCORS(t, preflight(handler, "/chat", origin).Header)
		refused := ask(t, handler, "POST", "/api/conversations", "{}", "Origin", origin, "Sec-Fetch-Site", "cross-site")
		refused.failed(403, "cross_origin", "Origin")
		wantNoCORS(t, refused.header)
		read := ask(t, handler, "GET", "/api/conversations", "", "Origin", origin)
		wantNoCORS(t, read.header)
		if read.header.Get("Vary") != "Origin" { // a cache must not give it to a page of a listed origin
			t.Errorf("Vary: %q", read.header.Get("Vary"))
		}
	}
	if answer := ask(t, handler, "GET", "/api/conversations", "", "Origin", listed, "Host", "evil.example"); answer.status != 403 {
		t.Errorf("under another host name: status %d", answer.status)
	}
}

// With keys, a page of a listed origin has a key in a header, or the session of a person who has the same site open.
func TestCORSWithKeys(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("acme")
	handler := newKeyedServer(t, keys, Options{Origins: []string{listed}})
	cookie := openSession(t, handler, shown)
	refused := ask(t, handler, "GET", "/api/conversations", "", "Origin", listed)
	refused.unauthorized("missing_api_key")
	wantCORS(t, refused.header)
	for _, header := range [][]string{as(shown), {"Cookie", cookie}} {
		for _, method := range []string{"GET", "POST"} {
			body := ""
			if method == "POST" {
				body = "{}"
			}
			if answer := ask(t, handler, method, "/api/conversations", body, append(header, "Origin", listed, "Sec-Fetch-Site", "same-site")...); answer.status >= 300 {
				t.Errorf("%s with %s: status %d: %s", method, header[0], answer.status, answer.body)
			}
		}
	}
	for _, method := range []string{"GET", "POST"} {
		body := ""
		if method == "POST" {
			body = "{}"
		}
		ask(t, handler, method, "/api/conversations", body, "Cookie", cookie, "Origin", unlisted, "Sec-Fetch-Site", "same-site").failed(403, "cross_origin", "Origin")
	}
}
