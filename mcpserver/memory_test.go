package mcpserver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/continuo-log/continuo/engine/memories"
)

// TestMemoryTools remembers, recalls and forgets a fact, and refuses a quote that nobody has said.
func TestMemoryTools(t *testing.T) {
	w := newWorld(t)
	c := w.client("default", nil)
	conversation := w.newConversation("default", "k", "The gate opens at noon.")
	var fact memories.Fact
	c.call("remember", `{"text": "The password of the gate is marmalade."}`, &fact)
	if fact.By != "mcp" || fact.ID == 0 {
		t.Errorf("remembered %+v", fact)
	}
	source := func(quote string) string {
		return fmt.Sprintf(`{"text": "The gate opens early.", "sources": [{"conversation_id": %q, "seq": 1, "quote": %q}]}`, conversation.ID, quote)
	}
	var quoted memories.Fact
	c.call("remember", source("opens at noon"), &quoted)
	if len(quoted.Sources) != 1 || quoted.Sources[0].ConversationID != conversation.ID {
		t.Errorf("remembered %+v", quoted)
	}
	c.call("remember", `{"text": "The gate is locked until 2999-07-31."}`, &quoted)
	if quoted.ValidTo.Format(time.DateOnly) != "2999-08-01" {
		t.Errorf("it ends at %s", quoted.ValidTo)
	}
	c.fails("remember", `{"text": "The gate is locked.", "valid_to": "2020-01-01T00:00:00Z"}`, "invalid_value", "valid_to")
	c.fails("remember", source("opens at dawn"), "invalid_value", "sources")
	var found struct{ Facts []memories.Fact }
	c.call("recall", `{"query": "What is the password of the gate?"}`, &found)
	if len(found.Facts) == 0 || found.Facts[0].ID != fact.ID {
		t.Errorf("recalled %+v", found.Facts)
	}
	var gone struct{ Forgotten int64 }
	c.call("forget", fmt.Sprintf(`{"fact": %d}`, fact.ID), &gone)
	c.call("recall", `{"query": "What is the password of the gate?"}`, &found)
	for _, left := range found.Facts {
		if left.ID == fact.ID {
			t.Errorf("a forgotten fact was recalled: %+v", left)
		}
	}
	c.fails("forget", fmt.Sprintf(`{"fact": %d}`, fact.ID), "not_found", "")
}
