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
