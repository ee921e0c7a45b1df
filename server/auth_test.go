package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// keyring is a store with keys.
type keyring struct {
	maintenance.Store
	t *testing.T
}

func newKeyring(t *testing.T) *keyring { return &keyring{storetest.NewMemory(), t} }

// newKey makes a key of a project.
func (k *keyring) newKey(project string) (key auth.Key, shown string) {
	k.t.Helper()
	key, shown = auth.New(time.Now())
	key.ProjectID = project
	if err := k.CreateProject(k.t.Context(), auth.Project{ID: project, CreatedAt: key.CreatedAt}); err != nil && !errors.Is(err, continuo.ErrExists) {
		k.t.Fatal(err)
	}
	if err := k.CreateKey(k.t.Context(), key); err != nil {
		k.t.Fatal(err)
	}
	return key, shown
}

func (k *keyring) revoke(key auth.Key) {
	k.t.Helper()
	if _, err := k.RevokeKey(k.t.Context(), key.ID, time.Now()); err != nil {
		k.t.Fatal(err)
	}
}

// brokenKeys is a store whose keys cannot be read.
type brokenKeys struct{ maintenance.Store }

var errBroken = errors.New("secret: the disk is gone")

func (brokenKeys) Key(context.Context, string) (auth.Key, error) {
	return auth.Key{}, errBroken
}
func (brokenKeys) Keys(context.Context, string) ([]auth.Key, error) { return nil, errBroken }

// as makes the header of a request with a key.
func as(shown string) []string { return []string{"Authorization", "Bearer " + shown} }

// newKeyedServer is a server in front of an engine, with keys.
func newKeyedServer(t *testing.T, keys *keyring, options Options) http.Handler {
	options.Keys = auth.NewChecker(keys, auth.Options{})
	return New(engineOver(t, keys.Store, engine.Options{}), options)
}

// unauthorized checks that an answer asks for a key.
func (r *reply) unauthorized(code string) {
	r.t.Helper()
	body := r.failed(http.StatusUnauthorized, code, "")
	if body.Error.Type != "authentication_error" || !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer") {
		r.t.Errorf("type %s, WWW-Authenticate %q", body.Error.Type, r.header.Get("WWW-Authenticate"))
	}
}

// Every call needs a key, those of later days too, but for those that tell nothing.
func TestEveryCallNeedsAKey(t *testing.T) {
	keys := newKeyring(t)
	keys.newKey("default")
	_, stranger := auth.New(time.Now())
	handler := newKeyedServer(t, keys, Options{})
	open := map[string]bool{"GET /healthz": true, "GET /readyz": true, "GET /openapi.json": true, "GET /api/workflows/schema": true, "GET /api/crews/schema": true, "GET /": true, "GET /api/session": true}
	for _, route := range (&server{}).routes() {
		call := route.Method + " " + route.shownPath()
		if strings.HasSuffix(call, " /api/session") && call != "GET /api/session" {
			continue // they give nothing without a key: TestSession
		}
		target := strings.NewReplacer("{id}", "s", "{seq}", "1", "{turn}", "turn_1").Replace(route.shownPath())
		answer := ask(t, handler, route.Method, target, "")
		if open[call] {
			if answer.status != 200 {
				t.Errorf("%s: status %d: %s", call, answer.status, answer.body)
			}
			continue
		}
		answer.unauthorized("missing_api_key")
		ask(t, handler, route.Method, target, "", as(stranger)...).unauthorized("invalid_api_key")
	}
	for _, target := range []string{"/nowhere", "//healthz", "/healthz/", "/api/../healthz", "/api/conversations/"} {
		ask(t, handler, "GET", target, "").unauthorized("missing_api_key")
	}
	ask(t, handler, "POST", "/healthz", "").unauthorized("missing_api_key")
}

// Keys come where clients of several families put them.
func TestWhereKeysStand(t *testing.T) {
	keys := newKeyring(t)
	_, ours := keys.newKey("default")
	_, theirs := keys.newKey("other")
	handler := newKeyedServer(t, keys, Options{})
	for _, test := range []struct {
		header []string
		code   string // "" where the caller is let in
	}{
		{[]string{"Authorization", "Bearer " + ours}, ""},
		{[]string{"Authorization", "bearer  " + ours}, ""},
		{[]string{"X-Api-Key", ours}, ""},
		{[]string{"Api-Key", ours}, ""},
		{[]string{"Authorization", "Bearer sk-dummy", "X-Api-Key", ours}, ""},
		{[]string{"Authorization", "Bearer " + ours, "X-Api-Key", ours}, ""},
		{[]string{"Authorization", "Bearer " + ours, "X-Api-Key", "sk-ant-dummy"}, ""},
		{[]string{"Authorization", "Bearer " + ours, "X-Api-Key", theirs}, "invalid_api_key"},
		{[]string{"Authorization", "Bearer " + ours[:len(ours)-1]}, "invalid_api_key"},
		{[]string{"Authorization", "Bearer sk-dummy"}, "invalid_api_key"},
		{[]string{"Authorization", "Bearer"}, "missing_api_key"},
		{[]string{"Authorization", "Basic " + ours}, "missing_api_key"},
		{[]string{"Authorization", ours}, "missing_api_key"},
		{[]string{"Cookie", "api-key=" + ours}, "missing_api_key"},
		{nil, "missing_api_key"},
	} {
		answer := ask(t, handler, "GET", "/api/conversations", "", test.header...)
		if test.code != "" {
			answer.unauthorized(test.code)
		} else if answer.status != 200 {
			t.Errorf("%v: status %d: %s", test.header, answer.status, answer.body)
		}
	}
	ask(t, handler, "GET", "/api/conversations?api_key="+ours, "").unauthorized("missing_api_key")
}

// Without keys a server is as open as it was; the first key closes it, and its end does not open it again.
func TestTheFirstKeyCloses(t *testing.T) {
	keys := newKeyring(t)
	handler := newKeyedServer(t, keys, Options{Project: "home"})
	_, stranger := auth.New(time.Now())
	for _, header := range [][]string{nil, as("sk-dummy"), {"X-Api-Key", "anything"}} {
		ask(t, handler, "GET", "/api/conversations", "", header...).into(200, &struct{}{})
	}
	ask(t, handler, "GET", "/api/conversations", "", as(stranger)...).unauthorized("invalid_api_key") // it is another store's
	key, shown := keys.newKey("acme")
	var began continuo.Conversation
	ask(t, handler, "POST", "/api/conversations", "{}", as(shown)...).into(201, &began)
	if began.ProjectID != "acme" {
		t.Errorf("a new key's conversation is in project %s", began.ProjectID)
	}
	ask(t, handler, "GET", "/api/conversations", "").unauthorized("missing_api_key")
	keys.revoke(key)
	handler = newKeyedServer(t, keys, Options{})
	ask(t, handler, "GET", "/api/conversations", "").unauthorized("missing_api_key")
	ask(t, handler, "GET", "/api/conversations", "", as(shown)...).unauthorized("invalid_api_key")
}

func TestKeyPolicies(t *testing.T) {
	always := newKeyedServer(t, newKeyring(t), Options{KeyPolicy: KeysAlways})
	ask(t, always, "GET", "/api/conversations", "").unauthorized("missing_api_key")
	ask(t, always, "GET", "/healthz", "").into(200, &struct{}{})
	keys := newKeyring(t)
	_, shown := keys.newKey("acme")
	nobody := New(newEngine(t, engine.Options{}), Options{KeyPolicy: KeysAlways})
	ask(t, nobody, "GET", "/api/conversations", "").unauthorized("missing_api_key")
	ask(t, nobody, "GET", "/api/conversations", "", as(shown)...).unauthorized("invalid_api_key")
	never := newKeyedServer(t, keys, Options{KeyPolicy: KeysNever})
	ask(t, never, "GET", "/api/conversations", "").into(200, &struct{}{})
	var began continuo.Conversation
	ask(t, never, "POST", "/api/conversations", "{}", as(shown)...).into(201, &began)
	if began.ProjectID != continuo.DefaultProject {
		t.Errorf("where no key counts, a conversation is in project %s", began.ProjectID)
	}
}

// Whom a foreign name cannot fool needs no check of it: a page of another site has no key. But what is open
// without a key stays closed to foreign names, and no key lets a page of another origin in.
func TestHostsWithKeys(t *testing.T) {
	keys := newKeyring(t)
	closed, open := newKeyedServer(t, keys, Options{KeyPolicy: KeysAlways}), newKeyedServer(t, newKeyring(t), Options{})
	_, shown := keys.newKey("default")
	foreign := []string{"Host", "continuo.example"}
	ask(t, closed, "GET", "/api/models", "", append(foreign, as(shown)...)...).into(200, &struct{}{})
	ask(t, closed, "GET", "/api/models", "", foreign...).unauthorized("missing_api_key")
	ask(t, closed, "GET", "/", "", foreign...)
	ask(t, open, "GET", "/api/models", "", foreign...).failed(403, "host_not_allowed", "Host")
	ask(t, open, "GET", "/", "", foreign...).failed(403, "host_not_allowed", "Host")
	ask(t, open, "GET", "/api/models", "", append(foreign, as("sk-dummy")...)...).failed(403, "host_not_allowed", "Host")
	ask(t, closed, "POST", "/api/conversations", "{}", append(as(shown), "Origin", "http://evil.example")...).failed(403, "cross_origin", "Origin")
}

// The figures are of all projects: a key of another than the server's own does not see them.
func TestFiguresAreTheOperators(t *testing.T) {
	keys := newKeyring(t)
	_, own := keys.newKey("home")
	_, tenant := keys.newKey("acme")
	handler := newKeyedServer(t, keys, Options{Project: "home", Registry: prometheus.NewRegistry()})
	ask(t, handler, "GET", "/healthz", "")
	if answer := ask(t, handler, "GET", "/metrics", "", as(own)...); answer.status != 200 || !strings.Contains(string(answer.body), "continuo_") {
		t.Errorf("status %d: %s", answer.status, answer.body)
	}
	if answer := ask(t, handler, "GET", "/metrics", "", as(tenant)...).failed(403, "not_your_figures", ""); answer.Error.Type != "permission_error" {
		t.Errorf("type %s", answer.Error.Type)
	}
	ask(t, handler, "GET", "/metrics", "").unauthorized("missing_api_key")
}

// The log says whose key it was, and has no secret.
func TestKeysAreLoggedByID(t *testing.T) {
	keys, log := newKeyring(t), &logBuffer{}
	key, shown := keys.newKey("acme")
	ask(t, newKeyedServer(t, keys, Options{Logger: log.logger()}), "GET", "/api/conversations", "", as(shown)...).into(200, &struct{}{})
	if line := log.line(t, "request"); line["key_id"] != key.ID || line["project"] != "acme" {
		t.Errorf("logged %v", line)
	}
	keys.revoke(key)
	afterwards := &logBuffer{}
	ask(t, newKeyedServer(t, keys, Options{Logger: afterwards.logger()}), "GET", "/api/conversations", "", as(shown)...).unauthorized("invalid_api_key")
	if line := afterwards.line(t, "request"); line["key_id"] != key.ID || line["status"] != 401.0 {
		t.Errorf("logged %v", line)
	}
	for _, text := range []string{log.String(), afterwards.String()} {
		if secret := shown[len(shown)-20:]; strings.Contains(text, secret) || strings.Contains(text, key.Hash) {
			t.Errorf("the log has the secret:\n%s", text)
		}
	}
}

// When the store fails, no caller is admitted, and a valid key is not reported as invalid.
func TestKeysOfAFailingStore(t *testing.T) {
	keys := &keyring{brokenKeys{storetest.NewMemory()}, t}
	handler := newKeyedServer(t, keys, Options{})
	_, shown := auth.New(time.Now())
	for _, header := range [][]string{nil, as(shown)} {
		answer := ask(t, handler, "GET", "/api/conversations", "", header...)
		if answer.failed(500, "internal", ""); strings.Contains(string(answer.body), "secret") {
			t.Errorf("the answer tells of the inside: %s", answer.body)
		}
	}
	ask(t, handler, "GET", "/healthz", "").into(200, &struct{}{})
	ask(t, handler, "GET", "/", "")
}

// blockedKeys is a store whose keys are waited for until the caller gives up.
type blockedKeys struct{ maintenance.Store }

func (blockedKeys) Keys(ctx context.Context, _ string) ([]auth.Key, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A program is alive while its store is not: the probes do not wait for the question whether there are keys.
func TestProbesDoNotWaitForKeys(t *testing.T) {
	handler := newKeyedServer(t, &keyring{blockedKeys{storetest.NewMemory()}, t}, Options{})
	for _, target := range []string{"/healthz", "/readyz"} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		request := httptest.NewRequestWithContext(ctx, "GET", target, nil)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != 200 || ctx.Err() != nil {
			t.Errorf("%s: status %d, %v", target, answer.Code, ctx.Err())
		}
		cancel()
	}
}
