package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
)

// auditedServer is a server that records reads, too.
func auditedServer(t *testing.T, keys *keyring, options Options) (http.Handler, *audit.Trail) {
	trail := audit.NewTrail(keys.Store, audit.Options{})
	t.Cleanup(trail.Close)
	options.Audit = trail
	return newKeyedServer(t, keys, options), trail
}

// events are those of a key's project, as operation, status and conversation.
func auditEvents(t *testing.T, handler http.Handler, shown, query string) (all []api.AuditEvent) {
	t.Helper()
	var page api.AuditPage
	ask(t, handler, "GET", "/api/audit"+query, "", as(shown)...).into(200, &page)
	return page.Data
}

func TestWhoChangedWhat(t *testing.T) {
	keys := newKeyring(t)
	key, shown := keys.newKey("project")
	_, otherShown := keys.newKey("other")
	bound, boundShown := auth.New(key.CreatedAt)
	bound.ProjectID, bound.UserID = "project", "ada"
	if err := keys.CreateKey(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	handler, _ := auditedServer(t, keys, Options{})
	var chat chatReply
	ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "the secret word is swordfish"}`, as(boundShown)...).into(200, &chat)
	ask(t, handler, "GET", "/api/conversations/"+chat.ConversationID, "", as(shown)...).into(200, &struct{}{})
	ask(t, handler, "DELETE", "/api/conversations/"+chat.ConversationID, "", as(shown)...)
	ask(t, handler, "DELETE", "/api/keys/"+bound.ID, "", as(shown)...).into(200, &struct{}{})
	events := auditEvents(t, handler, shown, "")
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprint(e.Operation, " ", e.KeyID, " ", e.UserID, " ", e.ConversationID, " ", e.Target, " ", e.Status))
		if e.Origin != audit.OriginHTTP || e.RequestID == "" || e.Remote != "192.0.2.1" || e.Count != 1 || e.At.IsZero() {
			t.Errorf("event %+v", e)
		}
	}
	want := []string{
		fmt.Sprint("chat ", bound.ID, " ada ", chat.ConversationID, "  200"),
		fmt.Sprint("deleteConversation ", key.ID, "  ", chat.ConversationID, "  204"),
		fmt.Sprint("revokeKey ", key.ID, "   ", bound.ID, " 200"),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for query, count := range map[string]int{
		"?key=" + bound.ID: 1, "?key=": 0, "?conversation=" + chat.ConversationID: 2, "?operation=revokeKey": 1, "?after=newest": 0,
		"?after=" + events[0].Cursor: 2, "?limit=1": 1, "?from=2999-01-01T00:00:00Z": 0, "?to=2999-01-01T00:00:00Z": 3,
	} {
		if found := auditEvents(t, handler, shown, query); len(found) != count {
			t.Errorf("%s: %d events, want %d", query, len(found), count)
		}
	}
	if others := auditEvents(t, handler, otherShown, "?conversation="+chat.ConversationID); len(others) > 0 {
		t.Errorf("another project sees %+v", others)
	}
	ask(t, handler, "GET", "/api/audit?after=x", "", as(shown)...).failed(400, "invalid_request", "after")
	ask(t, handler, "GET", "/api/audit?from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z", "", as(shown)...).failed(400, "invalid_request", "to")
	ask(t, handler, "GET", "/api/audit?from=x", "", as(shown)...).failed(400, "invalid_request", "from")
	if all := fmt.Sprint(events); strings.Contains(all, "swordfish") || strings.Contains(all, shown) {
		t.Errorf("the log has content: %s", all)
	}
}

func TestTheAuditLogIsNotForKeysOfUsers(t *testing.T) {
	keys := newKeyring(t)
	bound, shown := auth.New(time.Now())
	bound.ProjectID, bound.UserID = "project", "ada"
	if err := keys.CreateKey(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	handler, _ := auditedServer(t, keys, Options{})
	ask(t, handler, "GET", "/api/audit", "", as(shown)...).failed(403, "user_key", "")
}

// A change is in the store before the first byte of its answer.
func TestChangesAreRecordedBeforeTheirAnswer(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("project")
	handler, _ := auditedServer(t, keys, Options{})
	for _, request := range []struct{ method, path, body, operation string }{
		{"POST", "/api/conversations", `{}`, "createConversation"},
		{"POST", "/chat", `{"message": "hello"}`, "chat"},
		{"POST", "/chat", `{"message": "hello", "stream": true}`, "chat"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), request.method, request.path, strings.NewReader(request.body))
		r.Header.Set("Authorization", "Bearer "+shown)
		first := &firstByte{ResponseRecorder: httptest.NewRecorder(), look: func() {
			found, err := keys.AuditEvents(context.Background(), audit.Query{Newest: true, Limit: 1})
			if err != nil || len(found) != 1 || found[0].Operation != request.operation || found[0].ConversationID == "" {
				t.Errorf("%s: %v, %+v", request.path, err, found)
			}
		}}
		handler.ServeHTTP(first, r)
		if first.look != nil {
			t.Errorf("%s was not answered", request.path)
		}
	}
}

// firstByte looks when an answer begins.
type firstByte struct {
	*httptest.ResponseRecorder
	look func()
}

func (f *firstByte) WriteHeader(status int) {
	if f.look != nil {
		f.look()
		f.look = nil
	}
	f.ResponseRecorder.WriteHeader(status)
}

func (f *firstByte) Flush() { f.WriteHeader(http.StatusOK) }

func (f *firstByte) Write(data []byte) (int, error) {
	if f.look != nil {
		f.look()
		f.look = nil
	}
	return f.ResponseRecorder.Write(data)
}

// Refusals are recorded, of strangers in the server's own project, and counted; reads only where that is asked for.
func TestRefusalsAreRecorded(t *testing.T) {
	for _, reads := range []bool{false, true} {
		keys := newKeyring(t)
		_, shown := keys.newKey(continuo.DefaultProject)
		revoked, revokedShown := keys.newKey("project")
		keys.revoke(revoked)
		handler, trail := auditedServer(t, keys, Options{AuditReads: reads})
		for range 50 {
			ask(t, handler, "GET", "/api/conversations/secret", "").failed(401, "missing_api_key", "")
			ask(t, handler, "GET", "/api/conversations", "", as(revokedShown)...).failed(401, "invalid_api_key", "")
			ask(t, handler, "GET", "/nowhere", "").failed(401, "missing_api_key", "")
			ask(t, handler, "GET", "/api/models", "", as(shown)...).into(200, &struct{}{})
			ask(t, handler, "GET", "/healthz", "").into(200, &struct{}{})
		}
		trail.Close()
		events, err := keys.AuditEvents(t.Context(), audit.Query{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int64{}
		for _, e := range events {
			counts[fmt.Sprint(e.ProjectID, " ", e.KeyID, " ", e.Operation, " ", e.Status)] += e.Count
		}
		want := map[string]int64{
			"default  getConversation 401": 50, "default  none 401": 50, "project " + revoked.ID + " listConversations 401": 50,
		}
		if reads {
			delete(counts, "default "+auth.IDOf(shown)+" listModels 200")
		}
		if fmt.Sprint(counts) != fmt.Sprint(want) || len(events) > 8 {
			t.Errorf("reads %v: %d events, %v, want %v", reads, len(events), counts, want)
		}
	}
}

func TestTheAddressOfAClient(t *testing.T) {
	s := &server{options: Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}}}
	for name, test := range map[string]struct{ peer, forwarded, want string }{
		"no proxy":        {"192.0.2.1:7", "203.0.113.9", "192.0.2.1"},
		"a proxy":         {"10.1.2.3:7", "203.0.113.9", "203.0.113.9"},
		"a forged header": {"10.1.2.3:7", "198.51.100.1, 203.0.113.9", "203.0.113.9"},
		"two proxies":     {"[::1]:7", "203.0.113.9, 10.9.9.9", "203.0.113.9"},
		"no header":       {"10.1.2.3:7", "", "10.1.2.3"},
		"no address":      {"10.1.2.3:7", "<script>", "10.1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.RemoteAddr = test.peer
			if test.forwarded != "" {
				r.Header.Set("X-Forwarded-For", test.forwarded)
			}
			if got := s.remote(r); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
