package engine_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/interchange"
)

func documentOf(t *testing.T, key string, texts ...string) interchange.Document {
	t.Helper()
	var messages []map[string]string
	for i, text := range texts {
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	list, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	document, err := interchange.Messages(list, "")
	if err != nil {
		t.Fatal(err)
	}
	document.Conversation.Key = key
	return document
}

func TestAnImportIsKnownAgainByItsKeyOnly(t *testing.T) {
	h := newTurnHarness(t)
	scope := continuo.Scope{ProjectID: "default"}
	do := func(key string, texts ...string) (string, bool, int, error) {
		done, err := h.Conversations.Import(t.Context(), scope, documentOf(t, key, texts...))
		return done.Conversation.ID, done.Existed, done.Added, err
	}
	ada, _, _, err := do("", "hi", "Hello!")
	if err != nil {
		t.Fatal(err)
	}
	if bob, existed, _, err := do("", "hi", "Hello!"); err != nil || existed || bob == ada {
		t.Errorf("the same words under no key gave %s again (%v)", bob, err)
	}
	first, existed, _, err := do("s1", "hi", "Hello!")
	if err != nil || existed {
		t.Fatalf("%s, %v, %v", first, existed, err)
	}
	if again, existed, added, err := do("s1", "hi", "Hello!"); err != nil || !existed || again != first || added != 0 {
		t.Errorf("the second import: %s, %v, %d, %v", again, existed, added, err)
	}
	if more, existed, added, err := do("s1", "hi", "Hello!", "more", "yes"); err != nil || !existed || more != first || added != 2 {
		t.Errorf("a source that went on: %s, %v, %d, %v", more, existed, added, err)
	}
	if _, existed, added, err := do("s1", "hi", "Hello!", "more", "yes"); err != nil || !existed || added != 0 {
		t.Errorf("and again: %v, %d, %v", existed, added, err)
	}
	for name, texts := range map[string][]string{"other words": {"hello", "Hello!", "more", "yes"}, "fewer": {"hi", "Hello!"}} {
		if _, _, _, err := do("s1", texts...); !errors.Is(err, continuo.ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.Log.Append(t.Context(), first, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("here")}}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, existed, added, err := do("s1", "hi", "Hello!", "more", "yes"); err != nil || !existed || added != 0 {
		t.Errorf("after it went on here: %v, %d, %v", existed, added, err)
	}
	if _, _, _, err := do("s1", "hi", "Hello!", "more", "yes", "there"); !errors.Is(err, continuo.ErrExists) {
		t.Errorf("a source that went on as well: %v", err)
	}
	if _, err := h.Log.Create(t.Context(), continuo.Conversation{Key: "own"}); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := do("own", "hi"); !errors.Is(err, continuo.ErrExists) {
		t.Errorf("the key of a conversation that was not imported: %v", err)
	}
	adas := continuo.Scope{ProjectID: "default", UserID: "ada"}
	if _, err := h.Conversations.Import(t.Context(), adas, documentOf(t, "s1", "hi", "Hello!")); !errors.Is(err, continuo.ErrOtherUser) {
		t.Errorf("another user's key: %v", err)
	}
}

// A conversation that its source has gained messages in is as old as the source says: it does not come before those that
// people wrote in since.
func TestMoreOfAnImportKeepsItsTimes(t *testing.T) {
	h := newTurnHarness(t)
	began := time.Date(2020, 3, 1, 12, 0, 0, 0, time.UTC)
	document := func(changed time.Time, texts ...string) interchange.Document {
		d := documentOf(t, "old", texts...)
		d.Conversation.CreatedAt, d.Conversation.UpdatedAt = began, changed
		for i := range d.Entries {
			d.Entries[i].CreatedAt = began.Add(time.Duration(i) * time.Hour)
		}
		return d
	}
	for _, source := range []interchange.Document{
		document(began.Add(2*time.Hour), "hi", "Hello!"),
		document(began.Add(time.Hour), "hi", "Hello!", "more", "yes"),                      // its entries are newer than it says
		document(began.Add(24*time.Hour), "hi", "Hello!", "more", "yes", "and more", "no"), // somebody renamed it later
	} {
		done, err := h.Conversations.Import(t.Context(), continuo.Scope{ProjectID: "default"}, source)
		if err != nil {
			t.Fatal(err)
		}
		want := source.Conversation.UpdatedAt
		if last := source.Entries[len(source.Entries)-1].CreatedAt; last.After(want) {
			want = last
		}
		if got := done.Conversation.UpdatedAt; !got.Equal(want) {
			t.Errorf("with %d messages it changed at %s, want %s", len(source.Entries), got, want)
		}
	}
}
