package server

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/store/storetest"
)

// searchReply is a page of matches as clients see it.
type searchReply struct {
	Data       []index.Item
	HasMore    bool    `json:"has_more"`
	NextCursor *string `json:"next_cursor"`
	Incomplete bool
}

// searches: no text of another project is found, whatever the words, the conversation and the cursor.
func (v *victim) searches() {
	v.t.Helper()
	var page searchReply
	query := "?q=" + mark + "&limit=1"
	v.askAsOwner("GET", "/api/search"+query, "").into(200, &page)
	if len(page.Data) != 1 || page.NextCursor == nil {
		v.t.Fatalf("the victim itself finds %+v: the test shows nothing", page)
	}
	v.askAsOther("GET", "/api/search"+query+"&cursor="+*page.NextCursor, "").failed(400, "invalid_request", "cursor")
	for _, words := range []string{mark, "secret", "my secret is " + mark} {
		found := searchReply{}
		if v.askAsOther("GET", "/api/search?q="+url.QueryEscape(words), "").into(200, &found); len(found.Data) > 0 || found.Incomplete {
			v.t.Errorf("a thief who looks for %q finds %+v", words, found)
		}
	}
	for _, id := range append(slices.Clone(v.conversations), "key-"+mark) {
		v.hidden("GET", "/api/search?q="+mark+"&conversation=ID", "", id, noConversation)
	}
}

func TestASearchThroughTheServerContinues(t *testing.T) {
	handler := newServer(t)
	for range 15 {
		sendMessage(t, handler, "s1", "a needle for each of them")
	}
	target, found := "/api/search?q=needle&role=user&conversation=s1&limit=4", 0
	for cursor := ""; ; {
		var page searchReply
		ask(t, handler, "GET", target+cursor, "").into(200, &page)
		found += len(page.Data)
		if page.HasMore != (page.NextCursor != nil) {
			t.Errorf("has_more %t, next_cursor %v", page.HasMore, page.NextCursor)
		}
		if !page.HasMore {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if found != 15 {
		t.Errorf("found %d, want 15", found)
	}
	ask(t, handler, "GET", "/api/search?q=needle&cursor=", "").failed(400, "invalid_request", "cursor")
	ask(t, handler, "GET", "/api/search?q="+strings.Repeat("needle+", 200), "").failed(400, "invalid_request", "q")
	ask(t, handler, "GET", "/api/search?q=%ff", "").failed(400, "invalid_request", "q")
}

func TestASearchOfAnArchivedConversationIsRefused(t *testing.T) {
	store := storetest.NewMemory()
	made := engineOver(t, store, engine.Options{})
	handler := New(made, Options{})
	reply := sendMessage(t, handler, "s1", "needle")
	conversation, err := made.Conversations.Conversation(t.Context(), reply.ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Archive(t.Context(), conversation, conversation.UpdatedAt); err != nil {
		t.Fatal(err)
	}
	ask(t, handler, "GET", "/api/search?q=needle&conversation=s1", "").failed(409, "archived", "conversation")
}
