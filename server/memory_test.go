package server

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/memories"
)

// TestATurnIsLeftOutOfTheMemory says three things, of which a field and a header leave two out.
func TestATurnIsLeftOutOfTheMemory(t *testing.T) {
	e := newEngine(t, engine.Options{Memory: memories.Options{Enabled: true}})
	handler := New(e, Options{})
	for _, one := range []struct{ body, header string }{
		{`{"session_id": "s", "message": "I live in Oslo.", "memory": false}`, ""},
		{`{"session_id": "s", "message": "I live in Bergen."}`, "false"},
		{`{"session_id": "s", "message": "I live in Tromso."}`, ""},
	} {
		if answer := ask(t, handler, "POST", "/chat", one.body, "X-Continuo-Memory", one.header); answer.status != 200 {
			t.Fatalf("status %d: %s", answer.status, answer.body)
		}
	}
	if err := e.Memories.Extract(t.Context(), continuo.Scope{ProjectID: continuo.DefaultProject}, memories.Owner{}); err != nil {
		t.Fatal(err)
	}
	var list struct{ Data []memories.Fact }
	ask(t, handler, "GET", "/api/memory?all=true", "").into(200, &list)
	if len(list.Data) != 1 || !strings.Contains(list.Data[0].Text, "Tromso") {
		t.Errorf("the memory has %+v", list.Data)
	}
}

// TestARefusedFactNamesItsField also where the log has refused it.
func TestARefusedFactNamesItsField(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{})
	for body, param := range map[string]string{
		`{"text": ""}`:  "text",
		`{"text": " "}`: "text",
		`{"text": "x", "valid_to": "2020-01-01T00:00:00Z"}`:                                 "valid_to",
		`{"text": "x", "sources": [{"conversation_id": "conv_x", "seq": 1, "quote": "x"}]}`: "sources",
	} {
		ask(t, handler, "POST", "/api/memory", body).failed(400, "invalid_request", param)
	}
}
