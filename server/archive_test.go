package server

import (
	"path/filepath"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// Archived and restored through HTTP, a conversation is what it was, whatever keeps it; and neither an archiving
// nor a redaction comes between a turn and its entries.
func TestArchiveOverEveryStore(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (maintenance.Store, error){
		"memory": func(*testing.T) (maintenance.Store, error) { return storetest.NewMemory(), nil },
		"sqlite": func(t *testing.T) (maintenance.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
		},
		"postgres": func(t *testing.T) (maintenance.Store, error) {
			return postgres.Open(t.Context(), pgtest.Start(t, pgtest.Options{}).Database(t), postgres.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			e := engineOver(t, store, engine.Options{Tools: tool.Set{upper{}}, Policy: tool.Policy{Ask: []string{"test.upper"}, Otherwise: tool.Allow}})
			archivesAndRestores(t, e)
			keepsOffARunningTurn(t, e)
		})
	}
}

func archivesAndRestores(t *testing.T, e *engine.Engine) {
	handler := New(e, Options{})
	const one = "/api/conversations/s1"
	ask(t, handler, "POST", "/chat", `{"session_id": "s1", "message": "hello"}`).into(200, &chatReply{})
	ask(t, handler, "POST", "/chat", `{"session_id": "s1", "message": "fail: upstream"}`).failed(502, "llm_error", "")
	everything := func() string {
		text := ""
		for _, path := range []string{"", "/entries", "/turns", "/export", "/entries/2/request"} {
			text += string(ask(t, handler, "GET", one+path, "").body)
		}
		return text
	}
	before := everything()
	var archived, restored continuo.Conversation
	if ask(t, handler, "POST", one+"/archive", "").into(200, &archived); archived.ArchivedAt.IsZero() {
		t.Errorf("archived: %+v", archived)
	}
	ask(t, handler, "GET", one+"/entries", "").failed(409, "archived", "")
	ask(t, handler, "POST", "/chat", `{"session_id": "s1", "message": "hello"}`).failed(409, "archived", "")
	if ask(t, handler, "POST", one+"/restore", "").into(200, &restored); !restored.ArchivedAt.IsZero() {
		t.Errorf("restored: %+v", restored)
	}
	if after := everything(); after != before {
		t.Errorf("it was\n%s\nand came back as\n%s", before, after)
	}
	ask(t, handler, "POST", "/chat", `{"session_id": "s1", "message": "hello again"}`).into(200, &chatReply{})
}

func keepsOffARunningTurn(t *testing.T, e *engine.Engine) {
	handler := New(e, Options{})
	chat, err := e.Turns.Chat(t.Context(), engine.ChatRequest{Scope: continuo.Scope{ProjectID: continuo.DefaultProject}, SessionID: "s2", Message: continuo.Text("use the tool: x"), Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range chat.Events {
		switch {
		case err != nil:
			t.Fatal(err)
		case event.Kind == turn.Asked:
			ask(t, handler, "POST", "/api/conversations/s2/archive", "").failed(409, "conversation_busy", "")
			ask(t, handler, "POST", "/api/conversations/s2/redact", `{"seq": 1}`).failed(409, "conversation_busy", "")
			ask(t, handler, "POST", "/api/conversations/s2/turns/"+chat.TurnID+"/cancel", "").into(202, &struct{}{})
		}
	}
	var redacted struct{ Redacted []int64 }
	if ask(t, handler, "POST", "/api/conversations/s2/redact", `{"seq": 1}`).into(200, &redacted); len(redacted.Redacted) != 1 {
		t.Errorf("redacted %v", redacted.Redacted)
	}
	ask(t, handler, "POST", "/api/conversations/s2/archive", "").into(200, &continuo.Conversation{})
}
