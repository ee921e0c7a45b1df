package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/store/storetest"
)

// followConversation follows a conversation over the network.
func followConversation(t *testing.T, url, id, lastEventID string, header ...string) *listener {
	t.Helper()
	request := newRequest(t, "GET", url+"/api/conversations/"+id+"/events", "")
	if lastEventID != "" {
		request.Header.Set("Last-Event-ID", lastEventID)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return listen(t, request)
}

// next reads one event of a kind, and holds its data against openapi.json.
func (l *listener) next(t *testing.T, kind string, into any) sse.Event {
	t.Helper()
	event, err := l.events.Next()
	if kind == "finished" && event.Type == "turn" {
		event.Type = "finished"
	}
	if kind == "row" && event.Type == "conversation" {
		event.Type = "row"
	}
	if err != nil || event.Type != kind {
		t.Fatalf("the next event is %s %s (%v), want %s", event.Type, event.Data, err, kind)
	}
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	schema := map[string]string{"entry": "Entry", "turn": "Turn", "conversation": "Conversation", "revised": "RevisedEvent", "row": "ConversationRow", "removed": "RemovedEvent", "error": "Error", "finished": "FinishedTurn"}[kind]
	if err := d.validate("/components/schemas/"+schema, event.Data); err != nil {
		t.Errorf("%s: %v\n%s", kind, err, event.Data)
	}
	if err := json.Unmarshal(event.Data, into); err != nil {
		t.Fatal(err)
	}
	return event
}

// entry reads the event of an entry.
func (l *listener) entry(t *testing.T, seq int64) {
	t.Helper()
	var entry continuo.Entry
	if event := l.next(t, "entry", &entry); entry.Seq != seq || event.ID != strconv.FormatInt(seq, 10) {
		t.Fatalf("the entry is %d under the id %q, want %d", entry.Seq, event.ID, seq)
	}
}

// turnIn reads the event of a turn.
func (l *listener) turnIn(t *testing.T, state continuo.TurnState) {
	t.Helper()
	var turn continuo.Turn
	if l.next(t, "turn", &turn); turn.State != state || turn.Owner != "" {
		t.Errorf("the turn is %+v, want %s", turn, state)
	}
}

// A reader at one replica gets what another one does, once and in order, and continues after a disconnection.
func TestConversationIsFollowed(t *testing.T) {
	store, gate := storetest.NewMemory(), newGate()
	writer := New(engineOver(t, store, withModel(gate.model())), Options{})
	remote := httptest.NewServer(New(engineOver(t, store, engine.Options{}), Options{}))
	t.Cleanup(remote.Close) // after the streams, whose cleanups are later
	ask(t, writer, "POST", "/api/conversations", `{"key": "s"}`).into(201, &struct{}{})
	ask(t, writer, "POST", "/api/conversations/s/entries", `{"role": "user", "content": "before"}`)
	live, whole := followConversation(t, remote.URL, "s", ""), followConversation(t, remote.URL, "s", "0")
	whole.entry(t, 1)
	answer := background(t, writer, `{"message": "tell", "session_id": "s"}`)
	within(t, "the first word", gate.reached)
	for _, reader := range []*listener{live, whole} {
		reader.entry(t, 2)
		reader.turnIn(t, continuo.TurnRunning)
	}
	if err := whole.Body.Close(); err != nil {
		t.Fatal(err)
	}
	close(gate.open)
	<-answer
	live.entry(t, 3)
	live.turnIn(t, continuo.TurnFinished)
	followConversation(t, remote.URL, "s", "2").entry(t, 3)
	ask(t, writer, "PATCH", "/api/conversations/s", `{"title": "new"}`).into(200, &struct{}{})
	var conversation continuo.Conversation
	if live.next(t, "conversation", &conversation); conversation.Title != "new" {
		t.Errorf("changed to %+v", conversation)
	}
	ask(t, writer, "POST", "/api/conversations/s/redact", `{"seq": 1}`).into(200, &struct{}{})
	var revised api.RevisedEvent
	if live.next(t, "revised", &revised); revised.ConversationID != conversation.ID {
		t.Errorf("revised %+v", revised)
	}
	ask(t, writer, "DELETE", "/api/conversations/s", "")
	var failure api.Error
	if live.next(t, "error", &failure); failure.Error.Code != "not_found" {
		t.Errorf("ended with %+v", failure)
	}
}

// A stream that never ends by itself ends with the right to read it.
func TestConversationIsFollowedWhileAllowed(t *testing.T) {
	keys := newKeyring(t)
	key, shown := keys.newKey("acme")
	users, ada := keys.Store, userKey(t, keys.Store, "acme", "ada")
	handler := New(engineOver(t, keys.Store, engine.Options{}), Options{
		Keys: auth.NewChecker(users, auth.Options{Keep: time.Nanosecond}), KeepAlive: time.Millisecond,
	})
	remote := httptest.NewServer(handler)
	t.Cleanup(remote.Close) // after the streams, whose cleanups are later
	ask(t, handler, "POST", "/api/conversations", `{"key": "s", "user_id": "ada"}`, as(shown)...).into(201, &struct{}{})
	byKey := followConversation(t, remote.URL, "s", "", as(shown)...)
	byUser := followConversation(t, remote.URL, "s", "", as(ada)...)
	bySession := followConversation(t, remote.URL, "s", "", "Cookie", sessionAt(t, remote.URL, shown))
	ask(t, handler, "PATCH", "/api/conversations/s", `{"user_id": "bob"}`, as(shown)...).into(200, &struct{}{})
	var failure api.Error
	if byUser.next(t, "error", &failure); failure.Error.Code != "not_found" {
		t.Errorf("another's conversation ended with %+v", failure)
	}
	byKey.next(t, "conversation", &struct{}{})
	bySession.next(t, "conversation", &struct{}{})
	keys.revoke(key)
	if byKey.next(t, "error", &failure); failure.Error.Code != "invalid_api_key" {
		t.Errorf("a revoked key's ended with %+v", failure)
	}
	if bySession.next(t, "error", &failure); failure.Error.Code != "invalid_session" {
		t.Errorf("a session's ended with %+v", failure)
	}
}

// sessionAt opens a session over the network, where the cookie has another port.
func sessionAt(t *testing.T, url, key string) string {
	t.Helper()
	request := newRequest(t, "POST", url+"/api/session", `{"key": "`+key+`"}`)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for _, cookie := range response.Cookies() {
		return cookie.Name + "=" + cookie.Value
	}
	t.Fatalf("status %d", response.StatusCode)
	return ""
}

// A reader of the list at one replica gets what happens at another, and what it missed.
func TestListIsFollowed(t *testing.T) {
	store, gate := storetest.NewMemory(), newGate()
	writer := New(engineOver(t, store, withModel(gate.model())), Options{})
	remote := httptest.NewServer(New(engineOver(t, store, engine.Options{}), Options{}))
	t.Cleanup(remote.Close) // after the streams, whose cleanups are later
	ask(t, writer, "POST", "/api/conversations", `{"key": "before"}`).into(201, &struct{}{})
	request := newRequest(t, "GET", remote.URL+"/api/events?since=2000-01-01T00:00:00Z", "")
	stream := listen(t, request)
	var row api.ConversationRow
	until := func(stream *listener, key, state string) sse.Event {
		t.Helper()
		for {
			event := stream.next(t, "row", &row)
			if row.Key == key && row.State == state {
				return event
			}
		}
	}
	until(stream, "before", "idle")
	answer := background(t, writer, `{"message": "tell", "session_id": "s"}`)
	within(t, "the first word", gate.reached)
	seen := until(stream, "s", "running")
	if err := stream.Body.Close(); err != nil {
		t.Fatal(err)
	}
	close(gate.open)
	<-answer
	request = newRequest(t, "GET", remote.URL+"/api/events", "")
	request.Header.Set("Last-Event-ID", seen.ID)
	again := listen(t, request)
	defer again.Body.Close() // before the server, which waits for it
	until(again, "s", "idle")
	if row.Last == nil || row.Last.Text != "Once upon a time" || row.Usage.Requests != 1 {
		t.Errorf("the row is %+v", row)
	}
}

// A reader of the list gets what leaves it, once, and nothing of what it does not list.
func TestListIsLeft(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{})
	remote := httptest.NewServer(handler)
	t.Cleanup(remote.Close)
	modes := map[string]string{"first": "chat", "other": "agent", "second": "chat"}
	ids := map[string]string{}
	for _, key := range []string{"first", "other", "second"} {
		var made continuo.Conversation
		ask(t, handler, "POST", "/api/conversations", `{"key": "`+key+`", "mode": "`+modes[key]+`"}`).into(201, &made)
		ids[key] = made.ID
	}
	// No row has changed since then: the stream has nothing but what leaves the list.
	stream := listen(t, newRequest(t, "GET", remote.URL+"/api/events?mode=chat&since=2999-01-01T00:00:00Z", ""))
	defer stream.Body.Close()
	for _, key := range []string{"first", "other", "second"} {
		if answer := ask(t, handler, "DELETE", "/api/conversations/"+key, ""); answer.status != 204 {
			t.Fatalf("deleting it is answered with %d", answer.status)
		}
		var gone api.RemovedEvent
		if key == "other" {
			continue
		}
		if event := stream.next(t, "removed", &gone); event.ID != "" || gone != (api.RemovedEvent{ID: ids[key]}) {
			t.Errorf("the event is %+v: %+v", event, gone)
		}
	}
}

// roundPage reads a page of rounds.
func roundPage(t *testing.T, handler http.Handler, query string) (seqs []int64, next *string) {
	t.Helper()
	var page api.List[engine.Round]
	ask(t, handler, "GET", "/api/conversations/s/rounds"+query, "").into(200, &page)
	for _, round := range page.Data {
		seqs = append(seqs, round.Seq)
		if round.Round == nil || round.TurnID == "" || round.Round.Usage == nil {
			t.Errorf("round %+v", round)
		}
	}
	if page.HasMore != (page.NextCursor != nil) {
		t.Errorf("has_more is %v, the cursor %v", page.HasMore, page.NextCursor)
	}
	return seqs, page.NextCursor
}

func TestRounds(t *testing.T) {
	handler := newServer(t)
	for _, message := range []string{"one", "two", "three"} {
		ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "`+message+`"}`).into(200, &struct{}{})
	}
	for query, want := range map[string][]int64{
		"": {6, 4, 2}, "?before=6": {4, 2}, "?before=1": nil, "?before=2": nil, "?before=100": {6, 4, 2},
		"?after=0": {2, 4, 6}, "?after=2": {4, 6}, "?after=6": nil, "?after=100": nil,
	} {
		if seqs, next := roundPage(t, handler, query); !slices.Equal(seqs, want) || next != nil {
			t.Errorf("%q: %v, %v", query, seqs, next)
		}
	}
	for _, direction := range []string{"", "&after=0"} {
		var all []int64
		seqs, next := roundPage(t, handler, "?limit=1"+direction)
		for all = append(all, seqs...); next != nil; all = append(all, seqs...) {
			seqs, next = roundPage(t, handler, "?limit=1&cursor="+*next)
		}
		if want := map[string][]int64{"": {6, 4, 2}, "&after=0": {2, 4, 6}}[direction]; !slices.Equal(all, want) {
			t.Errorf("%q in pages: %v", direction, all)
		}
	}
	ask(t, handler, "GET", "/api/conversations/s/rounds?before=1&after=1", "").failed(400, "invalid_request", "after")
	ask(t, handler, "GET", "/api/conversations/s/rounds?cursor=x", "").failed(400, "invalid_request", "cursor")
}

// exerciseLive has the answers of streams that end when the program does.
func exerciseLive(t *testing.T) {
	made := newEngine(t, engine.Options{})
	handler := New(made, Options{})
	ask(t, handler, "POST", "/chat", `{"session_id": "s", "message": "hello"}`).into(200, &struct{}{})
	ask(t, handler, "GET", "/api/conversations/s/rounds", "").into(200, &struct{}{})
	ask(t, handler, "GET", "/api/conversations/none/rounds", "").failed(404, "not_found", "")
	ask(t, handler, "GET", "/api/conversations/none/events", "").failed(404, "not_found", "")
	ask(t, handler, "GET", "/api/conversations/s/events?after=3", "").failed(400, "bad_range", "after")
	ask(t, handler, "GET", "/api/conversations/s/events", "", "Last-Event-ID", "2/end").failed(400, "invalid_request", "Last-Event-ID")
	TestHealthReport(t)
	ask(t, handler, "GET", "/api/health?x=1", "").failed(400, "invalid_request", "x")
	ask(t, handler, "GET", "/api/usage", "").into(200, &struct{}{})
	ask(t, handler, "GET", "/api/usage?to=x", "").failed(400, "invalid_request", "to")
	ask(t, handler, "GET", "/api/feed", "").into(200, &struct{}{})
	ask(t, handler, "GET", "/api/feed?after=x", "").failed(400, "invalid_request", "after")
	ask(t, handler, "GET", "/api/feed/events", "", "Last-Event-ID", "newest").failed(400, "invalid_request", "Last-Event-ID")
	ask(t, handler, "GET", "/api/events", "", "Last-Event-ID", "x").failed(400, "invalid_request", "Last-Event-ID")
	made.Drain()
	ask(t, handler, "GET", "/api/events?since=2000-01-01T00:00:00Z", "")
	ask(t, handler, "GET", "/api/feed/events", "")
	ask(t, handler, "GET", "/api/conversations/s/events?after=0", "")
}

// A stream that is asked for while the program ends has its header, whatever comes first: the client then learns that it ended.
func TestStreamsOfAProgramThatEndsBegin(t *testing.T) {
	made := engineOver(t, storetest.NewMemory(), engine.Options{})
	handler := New(made, Options{})
	ask(t, handler, "POST", "/api/conversations", `{"key": "s"}`).into(201, &struct{}{})
	made.Drain()
	for range 50 {
		for _, path := range []string{"/api/events", "/api/feed/events", "/api/conversations/s/events?after=0"} {
			if answer := ask(t, handler, "GET", path, ""); answer.status != http.StatusOK || answer.header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("%s: %d %s", path, answer.status, answer.body)
			}
		}
	}
}
