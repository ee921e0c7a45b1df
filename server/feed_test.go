package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/api"
)

// The feed has each turn that ends, in one order for all readers, for as long as they like.
func TestFeed(t *testing.T) {
	keys := newKeyring(t)
	key, shown := keys.newKey("project")
	_, otherShown := keys.newKey("other")
	handler := newKeyedServer(t, keys, Options{})
	chat := func(session string) {
		t.Helper()
		ask(t, handler, "POST", "/chat", `{"session_id": "`+session+`", "message": "hello"}`, as(shown)...).into(200, &struct{}{})
	}
	page := func(query string, shown string) (feed api.Feed) {
		t.Helper()
		ask(t, handler, "GET", "/api/feed"+query, "", as(shown)...).into(200, &feed)
		return feed
	}
	if empty := page("", shown); len(empty.Data) != 0 || empty.HasMore || empty.Next != "0" {
		t.Errorf("the feed of nothing is %+v", empty)
	}
	for _, session := range []string{"a", "b", "a"} {
		chat(session)
	}
	first := page("?limit=2", shown)
	if len(first.Data) != 2 || !first.HasMore || first.Next != first.Data[1].Cursor {
		t.Fatalf("the first page is %+v", first)
	}
	if turn := first.Data[0]; turn.KeyID != key.ID || turn.State != "finished" || turn.Usage.InputTokens == 0 || turn.EndedAt.IsZero() {
		t.Errorf("the first turn is %+v", turn)
	}
	second := page("?limit=2&after="+first.Next, shown)
	if len(second.Data) != 1 || second.HasMore || second.Data[0].ConversationID != first.Data[0].ConversationID {
		t.Errorf("the second page is %+v", second)
	}
	if other := page("", otherShown); len(other.Data) != 0 {
		t.Errorf("another project sees %+v", other)
	}
	end := page("?after=newest", shown)
	chat("c")
	if after := page("?after="+end.Next, shown); len(after.Data) != 1 {
		t.Errorf("after the newest came %+v", after)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close) // after the stream has ended with the test's context
	request := newRequest(t, "GET", server.URL+"/api/feed/events?after="+second.Next, "")
	request.Header.Set("Authorization", "Bearer "+shown)
	following := listen(t, request)
	var turn api.FinishedTurn
	if event := following.next(t, "finished", &turn); event.ID != turn.Cursor {
		t.Errorf("event %s has the cursor %s", event.ID, turn.Cursor)
	}
	chat("d")
	before := turn.Cursor
	if following.next(t, "finished", &turn); turn.Cursor == before {
		t.Errorf("turn %s came twice", fmt.Sprint(turn.Cursor))
	}
}

// Where the beginning of the feed was removed, readers that missed some of it get an error, and the others continue.
func TestPrunedFeed(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("project")
	_, otherShown := keys.newKey("other")
	handler := newKeyedServer(t, keys, Options{})
	for _, caller := range []string{shown, otherShown, shown} {
		ask(t, handler, "POST", "/chat", `{"message": "hello"}`, as(caller)...).into(200, &struct{}{})
	}
	read := func(query, shown string) (page api.Feed) {
		t.Helper()
		ask(t, handler, "GET", "/api/feed"+query, "", as(shown)...).into(200, &page)
		return page
	}
	before, other := read("", shown), read("", otherShown)
	prune := func(through string, want int) {
		t.Helper()
		position, err := strconv.ParseInt(through, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if removed, err := keys.Store.PruneFinished(t.Context(), time.Now().Add(time.Hour), position, 10); err != nil || removed != want {
			t.Fatalf("removed %d, want %d: %v", removed, want, err)
		}
	}
	prune(other.Data[0].Cursor, 2)
	for _, path := range []string{"/api/feed?after=0", "/api/feed/events?after=0"} {
		refused := ask(t, handler, "GET", path, "", as(shown)...).failed(http.StatusGone, "feed_pruned", "")
		if !strings.Contains(refused.Error.Message, "after=oldest") {
			t.Errorf("%s: %q", path, refused.Error.Message)
		}
	}
	ask(t, handler, "GET", "/api/feed/events", "", append(as(shown), "Last-Event-ID", "0")...).failed(http.StatusGone, "feed_pruned", "")
	for _, query := range []string{"", "?after=oldest", "?after=" + before.Data[0].Cursor} {
		if page := read(query, shown); len(page.Data) != 1 || page.Next != before.Next {
			t.Errorf("%q finds %+v", query, page)
		}
	}
	if page := read("?after="+other.Next, otherShown); len(page.Data) != 0 {
		t.Errorf("a reader that has read all: %+v", page)
	}
	prune(before.Next, 1)
	page := read("", shown)
	if page.Next != before.Next {
		t.Errorf("the next of an empty feed is %s, not %s", page.Next, before.Next)
	}
	read("?after="+page.Next, shown)
}

// A reader that is beyond the end of the feed, as after an older state of the store was restored, is told so: it would miss
// the turns up to its cursor. So is a reader of the audit log.
func TestCursorsBeyondTheEnd(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("project")
	handler := newKeyedServer(t, keys, Options{})
	ask(t, handler, "POST", "/chat", `{"message": "hello"}`, as(shown)...).into(200, &struct{}{})
	for _, path := range []string{"/api/feed?after=2", "/api/feed/events?after=2"} {
		refused := ask(t, handler, "GET", path, "", as(shown)...).failed(http.StatusGone, "feed_restored", "")
		if !strings.Contains(refused.Error.Message, "after=oldest") {
			t.Errorf("%s: %q", path, refused.Error.Message)
		}
	}
	ask(t, handler, "GET", "/api/feed/events", "", append(as(shown), "Last-Event-ID", "2")...).failed(http.StatusGone, "feed_restored", "")
	ask(t, handler, "GET", "/api/feed?after=1", "", as(shown)...).into(200, &struct{}{})
	ask(t, handler, "GET", "/api/audit?after=99", "", as(shown)...).failed(http.StatusBadRequest, "invalid_request", "after")
}
