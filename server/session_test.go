package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
)

// cookieOf is the cookie that an answer sets, as a request sends it back.
func cookieOf(t *testing.T, answer *reply) string {
	t.Helper()
	set, _, _ := strings.Cut(answer.header.Get("Set-Cookie"), ";")
	if !strings.HasPrefix(set, "continuo_session_8787=ctns_") {
		t.Fatalf("the answer sets no session: %q", answer.header.Get("Set-Cookie"))
	}
	return set
}

// page is the header of a request that the server's own page sends with a session.
func page(cookie string, header ...string) []string {
	return append([]string{"Cookie", cookie, "Origin", "http://localhost:8787"}, header...)
}

// openSession opens a session with a key.
func openSession(t *testing.T, handler http.Handler, key string) string {
	t.Helper()
	answer := ask(t, handler, "POST", "/api/session", `{"key": "`+key+`"}`, "Origin", "http://localhost:8787")
	answer.into(201, &struct{}{})
	return cookieOf(t, answer)
}

func TestSession(t *testing.T) {
	keys := newKeyring(t)
	key, shown := keys.newKey("acme")
	first := newKeyedServer(t, keys, Options{SessionLife: time.Hour})
	second := New(engineOver(t, keys.Store, engine.Options{}), Options{Keys: auth.NewChecker(keys, auth.Options{})}) // a replica
	var who api.CallerSession
	ask(t, first, "GET", "/api/session", "").into(200, &who)
	if who != (api.CallerSession{Keys: true}) {
		t.Errorf("nobody is %+v", who)
	}
	opened := ask(t, first, "POST", "/api/session", `{"key": "`+shown+`"}`)
	opened.into(201, &who)
	if who.KeyID != key.ID || who.ProjectID != "acme" || !who.Authenticated || time.Until(who.ExpiresAt) > time.Hour || time.Until(who.ExpiresAt) < 55*time.Minute {
		t.Errorf("opened %+v", who)
	}
	set := opened.header.Get("Set-Cookie")
	for _, attribute := range []string{"; HttpOnly", "; SameSite=Strict", "; Path=/", "; Expires="} {
		if !strings.Contains(set, attribute) {
			t.Errorf("the cookie %q lacks %s", set, attribute)
		}
	}
	if strings.Contains(set, "Secure") || strings.Contains(set, shown[20:]) || strings.Contains(string(opened.body), shown[20:]) {
		t.Errorf("the answer has %q and %s", set, opened.body)
	}
	cookie := cookieOf(t, opened)
	for _, handler := range []http.Handler{first, second} {
		ask(t, handler, "GET", "/api/conversations", "", page(cookie)...).into(200, &struct{}{})
		ask(t, handler, "POST", "/api/conversations", "{}", page(cookie)...).into(201, &struct{}{})
		ask(t, handler, "GET", "/api/session", "", page(cookie)...).into(200, &who)
		if who.KeyID != key.ID {
			t.Errorf("the session is of %+v", who)
		}
	}
	ask(t, first, "DELETE", "/api/session", "", page(cookie, "Origin", "http://evil.example")...).failed(403, "cross_origin", "Origin")
	ended := ask(t, first, "DELETE", "/api/session", "", page(cookie)...)
	if ended.status != 204 || !strings.Contains(ended.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("status %d, %q", ended.status, ended.header.Get("Set-Cookie"))
	}
	ask(t, first, "GET", "/api/conversations", "", page(cookie)...).unauthorized("invalid_session")
	ask(t, New(engineOver(t, keys.Store, engine.Options{}), Options{Keys: auth.NewChecker(keys, auth.Options{})}), "GET", "/api/conversations", "", page(cookie)...).unauthorized("invalid_session")
	if again := ask(t, first, "DELETE", "/api/session", "", page(cookie)...); again.status != 204 {
		t.Errorf("ended twice: status %d", again.status)
	}
}

// Over TLS, wherever it ends, the cookie is for TLS only.
func TestSessionOverTLS(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("acme")
	handler := newKeyedServer(t, keys, Options{})
	for _, header := range [][]string{{"X-Forwarded-Proto", "https"}, {"Origin", "https://localhost:8787", "Sec-Fetch-Site", "same-origin"}} {
		answer := ask(t, handler, "POST", "/api/session", `{"key": "`+shown+`"}`, header...)
		if !strings.Contains(answer.header.Get("Set-Cookie"), "; Secure") {
			t.Errorf("%v: %q", header, answer.header.Get("Set-Cookie"))
		}
	}
}

// A browser adds the cookie to requests of other pages of the same site, such as another port of this machine.
func TestSessionIsForTheOwnPage(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("acme")
	handler := newKeyedServer(t, keys, Options{})
	cookie := openSession(t, handler, shown)
	for _, test := range []struct {
		method string
		header []string
		let    bool
	}{
		{"GET", nil, true},
		{"GET", []string{"Sec-Fetch-Site", "same-origin"}, true},
		{"GET", []string{"Sec-Fetch-Site", "none"}, true},
		{"GET", []string{"Sec-Fetch-Site", "same-site"}, false},
		{"GET", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{"GET", []string{"Origin", "http://localhost:3000"}, false},
		{"GET", []string{"Origin", "null"}, false},
		{"POST", nil, false},
		{"POST", []string{"Sec-Fetch-Site", "same-origin"}, false},
		{"POST", []string{"Origin", "null"}, false},
		{"POST", []string{"Origin", "http://localhost:3000"}, false},
		{"POST", []string{"Origin", "http://localhost:8787.evil.example"}, false},
		{"POST", []string{"Origin", "http://localhost:8787", "Sec-Fetch-Site", "same-site"}, false},
		{"POST", []string{"Origin", "http://localhost:8787", "Sec-Fetch-Site", "none"}, false},
		{"POST", []string{"Origin", "http://localhost:8787"}, true},
		{"POST", []string{"Origin", "http://localhost:8787", "Sec-Fetch-Site", "same-origin"}, true},
		{"POST", []string{"Origin", "https://page.example", "Sec-Fetch-Site", "same-origin"}, true}, // a proxy changed Host
	} {
		body := ""
		if test.method == "POST" {
			body = "{}"
		}
		answer := ask(t, handler, test.method, "/api/conversations", body, append([]string{"Cookie", cookie}, test.header...)...)
		if test.let && answer.status < 300 {
			continue
		}
		if test.let {
			t.Errorf("%s %v: status %d: %s", test.method, test.header, answer.status, answer.body)
			continue
		}
		answer.failed(403, "cross_origin", "Origin")
	}
	ask(t, handler, "POST", "/api/session", `{"key": "`+shown+`"}`, "Origin", "http://evil.example").failed(403, "cross_origin", "Origin")
}

// A session ends with its time and with its key, and its token is no key.
func TestSessionsEnd(t *testing.T) {
	keys := newKeyring(t)
	key, shown := keys.newKey("acme")
	handler := newKeyedServer(t, keys, Options{SessionLife: time.Nanosecond})
	short := openSession(t, handler, shown)
	ask(t, handler, "GET", "/api/conversations", "", page(short)...).unauthorized("invalid_session")
	handler = newKeyedServer(t, keys, Options{})
	cookie := openSession(t, handler, shown)
	_, token, _ := strings.Cut(cookie, "=")
	ask(t, handler, "GET", "/api/conversations", "", as(token)...).unauthorized("invalid_api_key")
	for _, forged := range []string{token[:len(token)-1], strings.Replace(token, "ctns_", "ctn_", 1), shown, "x"} {
		ask(t, handler, "GET", "/api/conversations", "", page("continuo_session_8787="+forged)...).unauthorized("invalid_session")
	}
	ask(t, handler, "GET", "/api/conversations", "", page(strings.Replace(cookie, "8787", "9999", 1))...).unauthorized("missing_api_key")
	ask(t, handler, "GET", "/api/conversations", "", append(page(cookie), as("ctn_wrong")...)...).unauthorized("invalid_api_key")
	keys.revoke(key)
	handler = newKeyedServer(t, keys, Options{}) // without what was kept
	ask(t, handler, "GET", "/api/conversations", "", page(cookie)...).unauthorized("invalid_session")
	ask(t, handler, "POST", "/api/session", `{"key": "`+shown+`"}`).unauthorized("invalid_api_key")
}

// A new session replaces the one that the browser had.
func TestSessionReplaced(t *testing.T) {
	keys := newKeyring(t)
	_, acme := keys.newKey("acme")
	_, other := keys.newKey("other")
	handler := newKeyedServer(t, keys, Options{})
	before := openSession(t, handler, acme)
	answer := ask(t, handler, "POST", "/api/session", `{"key": "`+other+`"}`, page(before)...)
	var who api.CallerSession
	if answer.into(201, &who); who.ProjectID != "other" {
		t.Errorf("opened %+v", who)
	}
	ask(t, handler, "GET", "/api/conversations", "", page(before)...).unauthorized("invalid_session")
	ask(t, handler, "GET", "/api/conversations", "", page(cookieOf(t, answer))...).into(200, &struct{}{})
}

// Where no key is needed, there is nothing to open.
func TestSessionWithoutKeys(t *testing.T) {
	handler := newServer(t)
	var who api.CallerSession
	ask(t, handler, "GET", "/api/session", "").into(200, &who)
	if who != (api.CallerSession{Authenticated: true, ProjectID: "default"}) {
		t.Errorf("the caller is %+v", who)
	}
	ask(t, handler, "POST", "/api/session", `{"key": "x"}`).failed(409, "keys_not_required", "")
	ask(t, handler, "POST", "/api/keys", `{}`).failed(409, "keys_not_required", "")
	ask(t, handler, "DELETE", "/api/keys/x", "").failed(409, "keys_not_required", "")
}

func TestMakingKeys(t *testing.T) {
	keys := newKeyring(t)
	key, shown := keys.newKey("acme")
	handler := newKeyedServer(t, keys, Options{})
	cookie := openSession(t, handler, shown)
	var made api.CreatedKey
	ask(t, handler, "POST", "/api/keys", `{"name": "laptop", "user_id": "ada", "expires_in": 60}`, page(cookie)...).into(201, &made)
	if made.Key.ProjectID != "acme" || made.Key.UserID != "ada" || made.Key.Name != "laptop" || made.Key.ExpiresAt.Sub(made.Key.CreatedAt) != time.Minute {
		t.Errorf("made %+v", made)
	}
	var second api.CreatedKey
	ask(t, handler, "POST", "/api/keys", `{}`, as(made.APIKey)...).into(201, &second)
	if second.Key.UserID != "ada" || !second.Key.ExpiresAt.Equal(made.Key.ExpiresAt) {
		t.Errorf("a key of ada's made %+v", second.Key)
	}
	ask(t, handler, "DELETE", "/api/keys/"+key.ID, "", as(made.APIKey)...).failed(404, "not_found", "")
	var listed api.All[auth.Key]
	ask(t, handler, "GET", "/api/keys", "", as(made.APIKey)...).into(200, &listed)
	if len(listed.Data) != 2 {
		t.Errorf("ada sees %+v", listed.Data)
	}
	answer := ask(t, handler, "GET", "/api/keys", "", page(cookie)...)
	if answer.into(200, &listed); len(listed.Data) != 3 || strings.Contains(string(answer.body), key.Hash) {
		t.Errorf("listed %s", answer.body)
	}
	var revoked auth.Key
	if ask(t, handler, "DELETE", "/api/keys/"+second.Key.ID, "", as(shown)...).into(200, &revoked); revoked.RevokedAt.IsZero() {
		t.Errorf("revoked %+v", revoked)
	}
	ask(t, handler, "GET", "/api/conversations", "", as(second.APIKey)...).unauthorized("invalid_api_key")
	ask(t, handler, "POST", "/api/keys", `{"expires_in": -1}`, page(cookie)...).failed(400, "invalid_request", "expires_in")
	ask(t, handler, "POST", "/api/keys", `{"name": "`+strings.Repeat("x", 101)+`"}`, page(cookie)...).failed(400, "invalid_request", "name")
}

// exerciseKeys has every answer of the calls about keys, whose values are secrets.
func exerciseKeys(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("acme")
	handler := newKeyedServer(t, keys, Options{})
	ask(t, handler, "GET", "/api/session", "", "Host", "evil.example")
	ask(t, newServer(t), "GET", "/api/session", "", "Host", "evil.example").failed(403, "host_not_allowed", "Host")
	ask(t, handler, "GET", "/api/session", "")
	ask(t, handler, "POST", "/api/session", `{"key": "`+shown+`"}`)
	ask(t, handler, "POST", "/api/session", `{"key": "wrong"}`).unauthorized("invalid_api_key")
	ask(t, handler, "DELETE", "/api/session", "")
	ask(t, handler, "DELETE", "/api/session", "", "Cookie", "continuo_session_8787=x").failed(403, "cross_origin", "Origin")
	for _, call := range [][2]string{{"GET", "/api/keys"}, {"POST", "/api/keys"}, {"DELETE", "/api/keys/x"}} {
		ask(t, handler, call[0], call[1], "").unauthorized("missing_api_key")
	}
	var made api.CreatedKey
	ask(t, handler, "POST", "/api/keys", `{}`, as(shown)...).into(201, &made)
	ask(t, handler, "GET", "/api/keys", "", as(shown)...).into(200, &struct{}{})
	ask(t, handler, "DELETE", "/api/keys/"+made.Key.ID, "", as(shown)...).into(200, &struct{}{})
}
