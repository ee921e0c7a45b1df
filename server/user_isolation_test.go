package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// userKey makes a key that is bound to a user.
func userKey(t *testing.T, store maintenance.Store, project, user string) string {
	t.Helper()
	key, shown := auth.New(time.Now())
	key.ProjectID, key.UserID = project, user
	if err := store.CreateKey(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	return shown
}

// projectWide are the rows of outside whose checks rest on the thief's project being another one. The user's own part
// of the project is tried by TestAKeyOfAUserSeesTheUsersConversationsOnly.
var projectWide = []string{
	"POST /chat", "GET /api/conversations", "POST /api/conversations", "POST /api/conversations/import",
	"POST /api/runs", "GET /api/runs", "POST /api/crews/{crew}/messages", "GET /api/workflows", "GET /api/workflows/{id}",
}

// A key that is bound to a user reaches no resource of the project that is another user's or has no user. Every call of
// the server is tried.
func TestUsersAreApart(t *testing.T) {
	store := storetest.NewMemory()
	v := newVictim(t, store)
	v.thief = userKey(t, store, "victim", "mallory")
	v.marks = slices.DeleteFunc(v.marks, func(mark string) bool { return mark == "victim" })
	var own chatReply
	v.askAsOther("POST", "/chat", `{"session_id": "mallorys", "message": "hello"}`).into(200, &own)
	v.thiefs, v.thiefSession, v.sharesProject = own.ConversationID, "mallorys", true
	before := v.all()
	for _, route := range (&server{}).routes() {
		if call := route.Method + " " + route.shownPath(); !slices.Contains(projectWide, call) {
			v.try(route.Method, route.shownPath())
		}
	}
	for _, id := range v.conversations {
		v.hidden("POST", "/chat", `{"session_id": "ID", "message": "hello"}`, id, noConversation)
	}
	for _, target := range []string{"/api/conversations?limit=100", "/api/runs", "/api/tasks", "/api/search?q=secret"} {
		v.askAsOther("GET", target, "").into(200, &struct{}{})
	}
	for _, session := range []string{"s1", "key-" + mark, "waiting-" + mark} { // keys are the project's
		v.askAsOther("POST", "/chat", `{"session_id": "`+session+`", "message": "hello"}`).failed(403, "other_user", "session_id")
		v.askAsOther("POST", "/api/runs", `{"session_id": "`+session+`", "workflow_id": "report", "inputs": {"topic": "x"}}`).failed(403, "other_user", "session_id")
	}
	v.askAsOther("POST", "/chat", `{"message": "hello"}`, "Idempotency-Key", v.idempotencyKeys[0]).into(200, &own)
	if slices.Contains(v.conversations, own.ConversationID) {
		t.Errorf("another's Idempotency-Key gave %+v", own)
	}
	v.checkUnchanged(before)
}

func TestAKeyOfAUserSeesTheUsersConversationsOnly(t *testing.T) {
	store := storetest.NewMemory()
	v := newVictim(t, store)
	ada, bob := userKey(t, store, "victim", "ada"), userKey(t, store, "victim", "bob")
	as := func(key, method, target, body string) *reply {
		return ask(t, v.handler, method, target, body, as(key)...)
	}
	var made continuo.Conversation
	as(ada, "POST", "/api/conversations", `{"key": "adas", "metadata": {"plan": "pro", "seats": 3}}`).into(201, &made)
	if made.UserID != "ada" {
		t.Errorf("the key's user has not got the conversation: %+v", made)
	}
	as(ada, "POST", "/api/conversations", `{"user_id": "bob"}`).failed(403, "other_user", "user_id")
	as(ada, "POST", "/chat", `{"message": "x", "user_id": "bob"}`).failed(403, "other_user", "user_id")
	as(ada, "GET", "/api/conversations?user_id=bob", "").failed(403, "other_user", "user_id")
	as(ada, "GET", "/api/search?q=x&user_id=bob", "").failed(403, "other_user", "user_id")
	as(ada, "POST", "/api/tasks", `{"description": "x", "user_id": "bob"}`).failed(403, "other_user", "user_id")
	for _, user := range []string{`"bob"`, `null`, `""`} {
		as(ada, "PATCH", "/api/conversations/adas", `{"user_id": `+user+`}`).failed(403, "other_user", "user_id")
	}
	as(bob, "GET", "/api/conversations/adas", "").failed(404, "not_found", "")
	as(bob, "POST", "/api/conversations", `{"key": "adas"}`).failed(409, "exists", "key")
	as(bob, "PATCH", "/api/conversations/"+made.ID, `{"title": "mine"}`).failed(404, "not_found", "")
	as(ada, "POST", "/chat", `{"session_id": "adas", "message": "my pelican is called Otto"}`).into(200, &chatReply{})
	for key, want := range map[string]int{ada: 1, bob: 0, v.key: 1} {
		for _, target := range []string{"/api/search?q=pelican", "/api/conversations?metadata.plan=pro&metadata.seats=3", "/api/search?q=pelican&metadata.plan=pro"} {
			if got := len(rowsOf(t, as(key, "GET", target, ""))); min(got, 1) != want {
				t.Errorf("%s: %d rows, want %d", target, got, want)
			}
		}
	}
	if rows := rowsOf(t, as(v.key, "GET", "/api/conversations?user_id=ada", "")); len(rows) != 1 {
		t.Errorf("the project's key lists %d conversations of ada", len(rows))
	}
	if rows := rowsOf(t, as(v.key, "GET", "/api/search?q=pelican&metadata.plan=free", "")); len(rows) != 0 {
		t.Errorf("a search finds %d entries of another plan", len(rows))
	}
	var fork continuo.Conversation
	as(ada, "POST", "/api/conversations/adas/fork", "{}").into(201, &fork)
	if fork.UserID != "ada" || fork.Key != "" {
		t.Errorf("the fork is %+v", fork)
	}
	var given struct {
		UserID string `json:"user_id"`
		TaskID string `json:"task_id"`
	}
	as(ada, "POST", "/api/tasks", `{"description": "x", "conversation_history": "adas"}`).into(201, &given)
	if given.UserID != "ada" {
		t.Errorf("the task is %+v", given)
	}
	as(bob, "GET", "/api/tasks/"+given.TaskID, "").failed(404, "not_found", "")
	as(ada, "GET", "/metrics", "").failed(403, "not_your_figures", "")
	as(ada, "GET", "/api/health", "").failed(403, "not_your_figures", "")
}

// rowsOf are the elements of a list.
func rowsOf(t *testing.T, answer *reply) []json.RawMessage {
	t.Helper()
	var page struct{ Data []json.RawMessage }
	answer.into(http.StatusOK, &page)
	return page.Data
}

func TestAnUnownedConversationIsClaimedByItsFirstUser(t *testing.T) {
	h := newVictim(t, storetest.NewMemory())
	chat := func(body string) *reply { return h.askAsOwner("POST", "/chat", body) }
	chat(`{"session_id": "s9", "message": "hello"}`).into(200, &chatReply{})
	chat(`{"session_id": "s9", "user_id": "ada", "message": "hello"}`).into(200, &chatReply{})
	var now continuo.Conversation
	if h.askAsOwner("GET", "/api/conversations/s9", "").into(200, &now); now.UserID != "ada" {
		t.Errorf("it is %q's", now.UserID)
	}
	chat(`{"session_id": "s9", "user_id": "bob", "message": "hello"}`).failed(403, "other_user", "session_id")
	chat(`{"session_id": "s9", "message": "who has the key of the project reaches all"}`).into(200, &chatReply{})
	chat(`{"message": "x", "user_id": "a\nb"}`).failed(400, "invalid_request", "user_id")
	if body := chat(`{"message": "x", "user_id": "`+strings.Repeat("x", 257)+`"}`).failed(400, "invalid_request", "user_id"); !strings.Contains(body.Error.Message, "256") {
		t.Errorf("the refusal is %q", body.Error.Message)
	}
}

func TestAKeyIsSetAndChangedLater(t *testing.T) {
	h := newVictim(t, storetest.NewMemory())
	patch := func(id, body string) *reply { return h.askAsOwner("PATCH", "/api/conversations/"+id, body) }
	var made, changed continuo.Conversation
	h.askAsOwner("POST", "/api/conversations", `{}`).into(201, &made)
	if patch(made.ID, `{"key": "later"}`).into(200, &changed); changed.Key != "later" {
		t.Errorf("the key is %q", changed.Key)
	}
	patch("later", `{"key": "latest"}`).into(200, &changed)
	h.askAsOwner("GET", "/api/conversations/later", "").failed(404, "not_found", "")
	h.askAsOwner("GET", "/api/conversations/latest", "").into(200, &changed)
	if problem := patch("latest", `{"key": "s1"}`).failed(409, "exists", "key"); !strings.Contains(problem.Error.Message, `"s1"`) {
		t.Errorf("the refusal does not name the key: %q", problem.Error.Message)
	}
	patch("latest", `{"key": "no spaces"}`).failed(400, "invalid_request", "key")
	patch("latest", `{"key": 7}`).failed(400, "invalid_request", "key")
	changed = continuo.Conversation{}
	if patch("latest", `{"key": null}`).into(200, &changed); changed.Key != "" || changed.ID != made.ID {
		t.Errorf("after null it is %+v", changed)
	}
}

func TestRunsAndCrewsBeginConversationsOfAUser(t *testing.T) {
	store := storetest.NewMemory()
	v := newVictim(t, store)
	ada := userKey(t, store, "victim", "ada")
	for _, test := range []struct{ target, body string }{
		{"/api/runs", `{"workflow_id": "report", "inputs": {"topic": "tea"}, "session_id": "SESSION", "user_id": "USER"}`},
		{"/api/crews/pair/messages", `{"message": "hello", "session_id": "SESSION", "user_id": "USER"}`},
	} {
		send := func(key, session, user string) *reply {
			body := strings.NewReplacer("SESSION", session, "USER", user).Replace(test.body)
			return ask(t, v.handler, "POST", test.target, body, as(key)...)
		}
		name := "users-" + strings.Split(test.target, "/")[2]
		if reply := send(v.key, name, "ada"); reply.status/100 != 2 {
			t.Fatalf("%s: %d %s", test.target, reply.status, reply.body)
		}
		var begun continuo.Conversation
		ask(t, v.handler, "GET", "/api/conversations/"+name, "", as(ada)...).into(200, &begun)
		if begun.UserID != "ada" {
			t.Errorf("%s began %+v", test.target, begun)
		}
		send(v.key, name, "bob").failed(403, "other_user", "session_id")
		send(ada, "other", "bob").failed(403, "other_user", "user_id")
		send(v.key, "other", `b\u0001`).failed(400, "invalid_request", "user_id")
	}
}

// An empty string is none, as null is, wherever a body has a field for a user, a key or a session.
func TestAnEmptyStringIsNone(t *testing.T) {
	h := newVictim(t, storetest.NewMemory())
	conversation := func(id string) (found continuo.Conversation) {
		t.Helper()
		h.askAsOwner("GET", "/api/conversations/"+id, "").into(200, &found)
		return found
	}
	for _, none := range []string{`""`, "null"} {
		set := strings.NewReplacer("NONE", none).Replace
		var made continuo.Conversation
		h.askAsOwner("POST", "/api/conversations", set(`{"key": NONE, "user_id": NONE}`)).into(201, &made)
		if made.Key != "" || made.UserID != "" {
			t.Errorf("created with %s: %+v", none, made)
		}
		h.askAsOwner("PATCH", "/api/conversations/"+made.ID, `{"key": "named", "user_id": "ada"}`).into(200, &made)
		var reply chatReply
		h.askAsOwner("POST", "/chat", set(`{"session_id": "named", "user_id": NONE, "message": "hello"}`)).into(200, &reply)
		if now := conversation("named"); reply.ConversationID != made.ID || now.UserID != "ada" {
			t.Errorf("a message with the user %s went to %s, which is %q's", none, reply.ConversationID, now.UserID)
		}
		h.askAsOwner("POST", "/chat", set(`{"session_id": NONE, "message": "hello"}`)).into(200, &reply)
		if fresh := conversation(reply.ConversationID); fresh.Key != "" || fresh.ID == made.ID {
			t.Errorf("a message with the session %s went to %+v", none, fresh)
		}
		h.askAsOwner("PATCH", "/api/conversations/named", set(`{"key": NONE, "user_id": NONE}`)).into(200, &struct{}{})
		if now := conversation(made.ID); now.Key != "" || now.UserID != "" {
			t.Errorf("changed to %s: %+v", none, now)
		}
		var imported struct{ Conversation continuo.Conversation }
		h.askAsOwner("POST", "/api/conversations/import", set(`{"messages": [{"role": "user", "content": "x"}], "key": NONE, "user_id": NONE}`)).into(201, &imported)
		if imported.Conversation.Key != "" || imported.Conversation.UserID != "" {
			t.Errorf("imported with %s: %+v", none, imported.Conversation)
		}
		for target, body := range map[string]string{
			"/api/runs":                `{"workflow_id": "report", "inputs": {"topic": "tea"}, "session_id": NONE, "user_id": NONE}`,
			"/api/crews/pair/messages": `{"message": "hello", "user_id": NONE}`,
			"/api/tasks":               `{"description": "x", "user_id": NONE}`,
		} {
			if answer := h.askAsOwner("POST", target, set(body)); answer.status >= 300 {
				t.Errorf("%s with %s: %s", target, none, answer.body)
			}
		}
	}
	h.askAsOwner("GET", "/api/conversations?user_id=", "").failed(400, "invalid_request", "user_id")
}
