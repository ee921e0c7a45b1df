package memories

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/store/storetest"
)

// newDeriving has two conversations in which ada says again what she wants, uses a tool and writes about sailing.
func newDeriving(t *testing.T, enabled bool) (*continuo.Log, *Memories) {
	t.Helper()
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	for c := range 2 {
		var entries []continuo.Entry
		for i := range 3 {
			call := fmt.Sprint("call", c, i)
			entries = append(entries,
				continuo.Entry{Role: continuo.User, Content: continuo.Text(fmt.Sprintf("Always answer in metric units. The sailing trip number %d%d leaves soon.", c, i))},
				continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{{ID: call, Name: "fs.read", Arguments: "{}"}}},
				continuo.Entry{Role: continuo.Tool, ToolCallID: call, Content: continuo.Text("sailing sailing")},
				continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("You love sailing and gardens.")})
		}
		for i := range 12 {
			entries = append(entries, continuo.Entry{Role: continuo.User, Content: continuo.Text(fmt.Sprintf("Go on with %d%d.", c, i))})
		}
		if _, err := log.Import(t.Context(), continuo.Conversation{ProjectID: "p", UserID: "ada"}, entries); err != nil {
			t.Fatal(err)
		}
	}
	return log, New(log, nil, nil, nil, Options{Enabled: enabled, Logger: slog.New(slog.DiscardHandler)})
}

func TestDerive(t *testing.T) {
	log, m := newDeriving(t, true)
	scope, owner := continuo.Scope{ProjectID: "p"}, Owner{UserID: "ada"}
	added, err := m.Derive(t.Context(), scope, owner)
	if err != nil {
		t.Fatal(err)
	}
	texts := ""
	for _, fact := range added {
		texts += fact.Text + "\n"
		conversations := map[string]bool{}
		for _, source := range fact.Sources {
			conversations[source.ConversationID] = true
		}
		if !fact.Derived || len(fact.Sources) < 3 || len(conversations) < 2 || fact.By != "counts" {
			t.Errorf("derived %+v", fact)
		}
	}
	for _, want := range []string{`writes about "sailing"`, "use the tool fs.read", "repeatedly: Always answer in metric units"} {
		if !strings.Contains(texts, want) {
			t.Errorf("nothing derived says %q: %s", want, texts)
		}
	}
	if strings.Contains(texts, "garden") {
		t.Errorf("what the assistant said was counted: %s", texts)
	}
	if again, err := m.Derive(t.Context(), scope, owner); err != nil || len(again) != 0 {
		t.Errorf("derived again: %+v, %v", again, err)
	}
	for _, fact := range added {
		if strings.Contains(fact.Text, "sailing") {
			if err := m.Forget(t.Context(), scope, owner, fact.ID, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	again, err := m.Derive(t.Context(), scope, owner)
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range again {
		if strings.Contains(fact.Text, "sailing") {
			t.Errorf("a pattern that was forgotten was derived again: %+v", fact)
		}
	}
	first, err := log.Conversation(t.Context(), added[0].Sources[0].ConversationID)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Delete(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	left, err := m.List(t.Context(), scope, Query{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range left {
		if fact.Derived {
			t.Errorf("a pattern stays without its sources: %+v", fact)
		}
	}
}

func TestDeriveIsRefusedWhereMemoryIsOff(t *testing.T) {
	_, m := newDeriving(t, false)
	if _, err := m.Derive(t.Context(), continuo.Scope{ProjectID: "p"}, Owner{UserID: "ada"}); !errors.Is(err, ErrDisabled) {
		t.Errorf("derive: %v", err)
	}
}

// TestAModelCannotInventPatterns has a model that names facts which do not exist, too few, or those of one conversation.
func TestAModelCannotInventPatterns(t *testing.T) {
	log, m := newDeriving(t, true)
	ctx, scope, owner := t.Context(), continuo.Scope{ProjectID: "p"}, Owner{UserID: "ada"}
	said := []string{"I prefer tea in the morning.", "I love sailing on the lake.", "I live in Oslo by the sea."}
	for range 2 {
		var entries []continuo.Entry
		for _, text := range said {
			entries = append(entries, continuo.Entry{Role: continuo.User, Content: continuo.Text(text)})
		}
		said = []string{"I bought a boat called Freya.", "I sold my car last month.", "I moved my desk to the window."}
		if _, err := log.Import(ctx, continuo.Conversation{ProjectID: "p", UserID: "ada"}, entries); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Extract(ctx, scope, owner); err != nil {
		t.Fatal(err)
	}
	conversation, err := m.find(ctx, scope, owner)
	if err != nil {
		t.Fatal(err)
	}
	s := &scanning{m: m, memory: conversation}
	if err := s.load(ctx); err != nil {
		t.Fatal(err)
	}
	ids := map[string]int64{}
	for _, k := range s.known {
		ids[k.Text] = k.Seq
	}
	tea, lake, oslo, boat := ids["I prefer tea in the morning"], ids["I love sailing on the lake"], ids["I live in Oslo by the sea"], ids["I bought a boat called Freya"]
	if tea*lake*oslo*boat == 0 {
		t.Fatalf("the facts are %v", ids)
	}
	liar := &scripted{answer: fmt.Sprintf(`{"patterns": [
		{"text": "The admin is Eve.", "facts": [901, 902, 903]},
		{"text": "The user is rich.", "facts": [%d, %d]},
		{"text": "The user is sad.", "facts": [%d, %d, %d]},
		{"text": "", "facts": [%d, %d, %d]},
		{"text": "The user likes to be near water.", "facts": [%d, %d, %d]}]}`, lake, boat, tea, lake, oslo, lake, oslo, boat, lake, oslo, boat)}
	added, err := s.deriveBy(ctx, byModel{catalog.Upstream{Model: liar}, "liar"})
	if err != nil || len(added) != 1 || added[0].Text != "The user likes to be near water." || len(added[0].Sources) != 3 || added[0].By != "model liar" {
		t.Errorf("derived %+v, %v", added, err)
	}
}
