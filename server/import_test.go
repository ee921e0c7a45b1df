package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// What one server exports, another imports over HTTP, with its key, and shows again what the model was sent.
func TestAnExportIsImportedByAnotherServer(t *testing.T) {
	first, second := newServer(t), newServer(t)
	chat := ask(t, first, "POST", "/chat", `{"session_id": "trip", "message": "use the tool: tea and rum", "stream": false}`)
	if chat.status != 200 {
		t.Fatalf("%d %s", chat.status, chat.body)
	}
	exported := ask(t, first, "GET", "/api/conversations/trip/export", "")
	send := func(body string, header ...string) *reply {
		t.Helper()
		return ask(t, second, "POST", "/api/conversations/import", body, append([]string{"Content-Type", "application/jsonl"}, header...)...)
	}
	var imported struct {
		Existed        bool
		Added, Entries int
	}
	send(string(exported.body)).into(201, &imported)
	var page struct {
		Data []struct {
			Seq   int64
			Round json.RawMessage
		}
	}
	ask(t, second, "GET", "/api/conversations/trip/entries", "").into(200, &page)
	if imported.Existed || imported.Entries == 0 || len(page.Data) != imported.Entries {
		t.Errorf("%+v; %d entries are there", imported, len(page.Data))
	}
	proved := 0
	for _, entry := range page.Data {
		if entry.Round == nil {
			continue
		}
		var again struct{ Same bool }
		if ask(t, second, "GET", fmt.Sprintf("/api/conversations/trip/entries/%d/request", entry.Seq), "").into(200, &again); again.Same {
			proved++
		}
	}
	if proved != 2 {
		t.Errorf("%d requests are shown as they were sent, want 2", proved)
	}
	send(string(exported.body)).into(200, &imported)
	if !imported.Existed || imported.Added != 0 {
		t.Errorf("the second import: %+v", imported)
	}
	for name, body := range map[string]string{
		"nothing":          "",
		"a list":           `[{"role": "user", "content": "hi"}]`,
		"two exports":      strings.Repeat(string(exported.body), 2),
		"half of one":      string(exported.body[:len(exported.body)/2]),
		"one without text": "\n\n",
	} {
		if answer := send(body); answer.status != 400 {
			t.Errorf("%s: %d %s", name, answer.status, answer.body)
		}
	}
}

// An Idempotency-Key identifies one list: the same list is found again, one with more messages appends them, and another
// list, or another user's, is refused as on every other route.
func TestAnImportUnderAnIdempotencyKeyTakesOneList(t *testing.T) {
	server := newServer(t)
	send := func(body string, header ...string) *reply {
		t.Helper()
		return ask(t, server, "POST", "/api/conversations/import", body, header...)
	}
	once := []string{"Idempotency-Key", "7f3a"}
	var first, again struct {
		Conversation struct{ ID string }
		Existed      bool
		Added        int
	}
	send(`{"messages": [{"role": "user", "content": "tea"}], "user_id": "ada"}`, once...).into(201, &first)
	send(`{"messages": [{"role": "user", "content": "tea"}, {"role": "assistant", "content": "Noted."}]}`, once...).into(200, &again)
	if !again.Existed || again.Added != 1 || again.Conversation.ID != first.Conversation.ID {
		t.Errorf("the list that has gained a message: %+v", again)
	}
	for name, body := range map[string]string{
		"another list":   `{"messages": [{"role": "user", "content": "rum"}]}`,
		"a shorter list": `{"messages": [{"role": "user", "content": "tea"}]}`,
		"another user":   `{"messages": [{"role": "user", "content": "tea"}, {"role": "assistant", "content": "Noted."}], "user_id": "bob"}`,
	} {
		problem := send(body, once...).failed(409, "idempotency_conflict", "Idempotency-Key")
		if !strings.Contains(problem.Error.Message, "7f3a") || strings.Contains(problem.Error.Message, "once-") {
			t.Errorf("%s: the refusal is %q", name, problem.Error.Message)
		}
	}
	send(`{"messages": [{"role": "user", "content": "tea"}], "key": "trip"}`, once...).into(201, &first)
	send(`{"messages": []}`, "Idempotency-Key", "two words").failed(400, "invalid_request", "Idempotency-Key")
	ask(t, server, "PATCH", "/api/conversations/trip", `{"key": null}`).into(200, &struct{}{})
	exported := string(ask(t, server, "GET", "/api/conversations/"+first.Conversation.ID+"/export", "").body)
	export := []string{"Content-Type", "application/jsonl", "Idempotency-Key", "91c0"}
	send(exported, export...).into(201, &first)
	if send(exported, export...).into(200, &again); !again.Existed || again.Added != 0 || again.Conversation.ID != first.Conversation.ID {
		t.Errorf("the same export: %+v", again)
	}
	send(`{"messages": [{"role": "user", "content": "tea"}], "key": "trip"}`).into(201, &first)
	send(`{"messages": [{"role": "user", "content": "rum"}], "key": "trip"}`, once...).failed(409, "exists", "key")
}
