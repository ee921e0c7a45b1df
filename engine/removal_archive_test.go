package engine_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/postgres"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
)

// archiving is a store with a conversation that recalls what another one and the memory have, and with a fork; all of them
// are of anna.
type archiving struct {
	*recalling
	objects  continuo.ObjectStore
	archives maintenance.Archivist
	source   continuo.Conversation // has the secret at seq 1
	quoting  continuo.Conversation // has recalled it
	keeper   continuo.Conversation // has recalled the fact
	fork     continuo.Conversation // of source, with a summary of the secret
}

func newArchiving(t *testing.T, store interface {
	maintenance.Store
	index.Store
},
) *archiving {
	t.Helper()
	objects := storetest.NewObjects()
	archives := maintenance.Archivist{Store: store, Objects: objects}
	r := newScopedWith(t, store, continuo.LogOptions{Objects: objects, Archives: archives}, store, lookup.User, 0)
	r.Catalog.Options.Models["demo"] = engine.Upstream{Model: noted{}} // an answer that repeats something is not reached
	w := &archiving{recalling: r, objects: objects, archives: archives}
	w.source = r.say("trip", "anna", "The password of the harbour gate in Lisbon is marmalade.")
	if _, err := r.Memories.Remember(t.Context(), continuo.Scope{ProjectID: "default"}, memories.Statement{
		Owner: memories.Owner{UserID: "anna"}, Text: "The keeper of the harbour gate in Lisbon is Quimby.",
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		r.say(fmt.Sprint("fill", i), "anna", fmt.Sprintf("Step %d: buy tickets and pack the bag.", i))
	}
	r.indexAll()
	w.quoting = r.say("new", "anna", gateQuestion)
	w.keeper = r.say("keeper", "anna", "Who is the keeper of the harbour gate in Lisbon?")
	fork, err := r.Log.Fork(t.Context(), w.source.ID, 0, continuo.Conversation{UserID: "anna", Title: "is marmalade"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Log.Append(t.Context(), fork.ID, []continuo.Entry{{
		Role: continuo.System, Hidden: true, PartType: continuo.PartSummary, Content: continuo.Text("They spoke of marmalade."), Summary: &continuo.Summary{From: 1, Through: 2},
	}}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	w.fork = fork
	return w
}

func (w *archiving) archive(all ...continuo.Conversation) {
	w.t.Helper()
	for _, c := range all {
		if _, err := w.archives.Archive(w.t.Context(), c.ID); err != nil {
			w.t.Fatal(err)
		}
	}
}

// has reports whether the archive of a conversation has a word.
func (w *archiving) has(c continuo.Conversation, word string) bool {
	w.t.Helper()
	now, err := w.Log.Conversation(w.t.Context(), c.ID)
	if err != nil || now.ArchivedAt.IsZero() {
		w.t.Fatalf("%s is not archived: %+v, %v", c.ID, now, err)
	}
	return strings.Contains(archiveText(w.t, w.objects, now), word)
}

// lacks checks that the archives of conversations do not have a word, and that they can be restored.
func (w *archiving) lacks(word string, all ...continuo.Conversation) {
	w.t.Helper()
	for _, c := range all {
		if w.has(c, word) {
			w.t.Errorf("the archive of %s still has %s", c.ID, word)
		}
		if _, err := w.archives.Restore(w.t.Context(), c.ID); err != nil {
			w.t.Error(err)
		}
		if entries := w.entries(c); len(entries) == 0 {
			w.t.Errorf("%s has no entries", c.ID)
		}
	}
}

// TestRemovalsReachArchives archives the conversations that recalled or summarized something, or that had it, and removes it.
func TestRemovalsReachArchives(t *testing.T) {
	type both interface {
		maintenance.Store
		index.Store
	}
	server := pgtest.Start(t, pgtest.Options{})
	for name, open := range map[string]func(t *testing.T) (both, error){
		"memory": func(*testing.T) (both, error) { return storetest.NewMemory(), nil },
		"sqlite": func(t *testing.T) (both, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
		},
		"postgres": func(t *testing.T) (both, error) {
			return postgres.Open(t.Context(), server.Database(t), postgres.Options{})
		},
	} {
		start := func(t *testing.T) *archiving {
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			w := newArchiving(t, store)
			w.archive(w.quoting, w.keeper, w.fork)
			if !w.has(w.quoting, "marmalade") || !w.has(w.keeper, "Quimby") || !w.has(w.fork, "marmalade") {
				t.Fatal("nothing was recalled")
			}
			return w
		}
		t.Run(name+"/redaction", func(t *testing.T) {
			w := start(t)
			if _, err := w.Log.Redact(t.Context(), w.source, 1, 1, ""); err != nil {
				t.Fatal(err)
			}
			w.lacks("marmalade", w.quoting, w.fork)
		})
		t.Run(name+"/redaction of what is archived", func(t *testing.T) {
			w := start(t)
			w.archive(w.source)
			if _, err := w.Log.Redact(t.Context(), w.fork, 1, 1, ""); err != nil {
				t.Fatal(err)
			}
			w.lacks("marmalade", w.source, w.quoting, w.fork)
		})
		t.Run(name+"/deletion of what is archived", func(t *testing.T) {
			w := start(t)
			w.archive(w.source)
			if err := w.Log.Delete(t.Context(), w.source.ID); err != nil {
				t.Fatal(err)
			}
			w.lacks("marmalade", w.quoting)
		})
		t.Run(name+"/another user", func(t *testing.T) {
			w := start(t)
			w.archive(w.source)
			other := "bo"
			if _, err := w.Log.Update(t.Context(), w.source.ID, continuo.ConversationChange{UserID: &other}); err != nil {
				t.Fatal(err)
			}
			w.lacks("marmalade", w.quoting)
		})
		t.Run(name+"/everything is forgotten", func(t *testing.T) {
			w := start(t)
			if err := w.Memories.ForgetAll(t.Context(), continuo.Scope{ProjectID: "default"}, memories.Owner{UserID: "anna"}, false); err != nil {
				t.Fatal(err)
			}
			w.lacks("Quimby", w.keeper)
		})
		t.Run(name+"/without archives", func(t *testing.T) {
			w := start(t)
			log := continuo.NewLog(w.archives.Store, continuo.LogOptions{})
			if _, err := log.Redact(t.Context(), w.source, 1, 1, ""); !errors.Is(err, continuo.ErrArchived) || !strings.Contains(err.Error(), "conv_") {
				t.Errorf("the redaction: %v", err)
			}
			if first := w.entries(w.source)[0]; first.Redacted != nil {
				t.Error("the entry is redacted, but not what repeats it")
			}
		})
	}
}
