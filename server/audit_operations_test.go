package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/ledger"
)

// notAudited are the operations that no event is made of, and why.
var notAudited = map[string]string{
	"health": "a probe", "ready": "a probe",
	"openapi": "public", "index": "public", "showSession": "public", "showWorkflowSchema": "public", "showCrewSchema": "public",
	"speakMCP": "its tools and resources have events of their own",
}

var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// Every operation of the API, those of later days too, is in the audit log under its id: a change always, a read where reads are
// recorded. One that names a conversation by its key is there with the conversation's id.
func TestEveryOperationIsAudited(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("project")
	handler, trail := auditedServer(t, keys, Options{AuditReads: true})
	conversations := map[string]string{} // by operation
	for _, route := range (&server{}).routes() {
		method := route.Method
		target := placeholder.ReplaceAllStringFunc(route.shownPath(), func(name string) string {
			if !strings.HasPrefix(route.Path, "/api/conversations/{id}") || name != "{id}" {
				return "unknown"
			}
			var created struct{ Conversation struct{ ID string } }
			ask(t, handler, "POST", "/api/conversations/import", `{"messages": [{"role": "user", "content": "Hello"}], "key": "`+route.ID+`"}`, as(shown)...).into(201, &created)
			conversations[route.ID] = created.Conversation.ID
			return route.ID
		})
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, method, "http://localhost:8787"+target, strings.NewReader(auditBody(route.ID)))
		r.Header.Set("Authorization", "Bearer "+shown)
		r.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(&firstByte{ResponseRecorder: httptest.NewRecorder(), look: cancel}, r) // a stream ends when it has begun
		cancel()
	}
	trail.Close()
	events, err := keys.AuditEvents(t.Context(), audit.Query{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]audit.Event{}
	for _, e := range events {
		recorded[e.Operation] = e
	}
	for _, route := range (&server{}).routes() {
		e, ok := recorded[route.ID]
		if why := notAudited[route.ID]; ok == (why != "") {
			t.Errorf("%s (%s): recorded %t, %s", route.ID, route.Method, ok, why)
		}
		id := conversations[route.ID]
		if e.Status == http.StatusBadRequest && e.ConversationID == route.ID { // refused before it was looked for: as it was named
			id = route.ID
		}
		if ok && id != "" && e.ConversationID != id {
			t.Errorf("%s: the event has the conversation %q, want %q (status %d)", route.ID, e.ConversationID, id, e.Status)
		}
	}
}

// auditBody is a body with which an operation gets as far as its conversation.
func auditBody(operation string) string {
	switch operation {
	case "appendEntries":
		return `{"entries": [{"role": "user", "content": "again"}]}`
	case "redactEntries":
		return `{"from": 1, "to": 1}`
	case "decide":
		return `{"call_id": "c", "allow": true}`
	}
	return `{}`
}

// A change names what was changed, however it was named or made.
func TestWhatAChangeIsAbout(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("project")
	trail := audit.NewTrail(keys.Store, audit.Options{})
	t.Cleanup(trail.Close)
	e := engineOver(t, keys.Store, engine.Options{})
	handler := New(e, Options{Audit: trail, Keys: auth.NewChecker(keys, auth.Options{})})
	newest := func() (event audit.Event) {
		t.Helper()
		found, err := keys.AuditEvents(t.Context(), audit.Query{Newest: true, Limit: 1})
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %d events", err, len(found))
		}
		return found[0]
	}
	var imported struct{ Conversation struct{ ID string } }
	ask(t, handler, "POST", "/api/conversations/import", `{"messages": [{"role": "user", "content": "Hello"}]}`, as(shown)...).into(http.StatusCreated, &imported)
	if got := newest(); got.Operation != "importConversation" || got.ConversationID != imported.Conversation.ID {
		t.Errorf("after an import of %s: %+v", imported.Conversation.ID, got)
	}
	var made struct {
		TaskID string `json:"task_id"`
	}
	ask(t, handler, "POST", "/api/tasks", `{"description": "Find it"}`, as(shown)...).into(http.StatusCreated, &made)
	if got := newest(); got.Operation != "createTask" || got.Target != made.TaskID || got.ConversationID == "" {
		t.Errorf("after the task %s: %+v", made.TaskID, got)
	}
	memory := ""
	for range 2 { // the second time the key's fact is there
		ask(t, handler, "POST", "/api/memory?user_id=ada", `{"text": "I like tea"}`, append(as(shown), "Idempotency-Key", "k")...).into(http.StatusCreated, &struct{}{})
		got := newest()
		if got.Operation != "remember" || got.Target != "1" || got.ConversationID == "" {
			t.Errorf("after a fact: %+v", got)
		}
		memory = got.ConversationID
	}
	ask(t, handler, "DELETE", "/api/memory?user_id=ada", "", as(shown)...)
	if got := newest(); got.Operation != "forgetAll" || got.ConversationID != memory {
		t.Errorf("after all facts were forgotten: %+v, want conversation %s", got, memory)
	}
	for range 2 { // the second time the key's turn is there
		var chat chatReply
		ask(t, handler, "POST", "/chat", `{"message": "Hello"}`, append(as(shown), "Idempotency-Key", "k")...).into(http.StatusOK, &chat)
		if got := newest(); got.Operation != "chat" || got.ConversationID != chat.ConversationID {
			t.Errorf("after a turn in %s: %+v", chat.ConversationID, got)
		}
	}
}

// A turn that is refused before its conversation is created names none: a reader would look for it in vain.
func TestARefusedTurnNamesNoConversation(t *testing.T) {
	keys := newKeyring(t)
	_, shown := keys.newKey("project")
	trail := audit.NewTrail(keys.Store, audit.Options{})
	e := engineOver(t, keys.Store, engine.Options{Budgets: ledger.BudgetOptions{Project: auth.Budget{Tokens: 1, Period: auth.PeriodDay}}})
	handler := New(e, Options{Audit: trail, Keys: auth.NewChecker(keys, auth.Options{})})
	ask(t, handler, "POST", "/chat", `{"message": "Hello"}`, as(shown)...).into(http.StatusOK, &chatReply{})
	ask(t, handler, "POST", "/chat", `{"message": "Hello"}`, as(shown)...).failed(http.StatusTooManyRequests, "budget_exceeded", "")
	trail.Close()
	events, err := keys.AuditEvents(t.Context(), audit.Query{Limit: 10})
	if err != nil || len(events) != 2 || events[0].ConversationID == "" || events[1].Status != http.StatusTooManyRequests || events[1].ConversationID != "" {
		t.Errorf("%v, %+v", err, events)
	}
}
