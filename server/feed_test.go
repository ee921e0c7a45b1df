package server

import (
	"fmt"
	"net/http/httptest"
	"testing"

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
