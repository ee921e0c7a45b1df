package engine_test

import (
	"bytes"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// newInterrupted is an engine whose turns call a function after they have found what they recall, and before they append it.
func newInterrupted(t *testing.T, store maintenance.Store, words index.Store, between func()) *recalling {
	t.Helper()
	log := continuo.NewLog(store, continuo.LogOptions{Counter: token.O200k()})
	views := window.DefaultSettings()
	views.ChatMaxMessages, views.ChatMaxTokens, views.ChatFollowsWindow = 8, 900, false
	order := func(texts []string) ([]int, error) {
		between()
		return make([]int, len(texts)), nil // no order: that of the words stays
	}
	e, err := engine.New(log, engine.Options{
		Models: map[string]engine.Upstream{"demo": {Model: noted{}}}, Default: "demo", Views: &views, Index: words,
		Reranker: &scriptedOrder{order: order}, RecallScope: lookup.User, Memory: memories.Options{Enabled: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(t.Context()) })
	return &recalling{testEngine: &testEngine{e, log}, t: t, index: words}
}

// TestARemovalWhileATurnBegins removes what a turn has found, before it is appended: neither the log nor the request has it.
func TestARemovalWhileATurnBegins(t *testing.T) {
	for name, test := range map[string]struct {
		session string // in which is asked
		remove  func(r *recalling, said continuo.Conversation) error
	}{
		"in the conversation": {"s", func(r *recalling, said continuo.Conversation) error {
			_, err := r.Log.Redact(r.t.Context(), said, 3, 4, "")
			return err
		}},
		"in the parent of a fork": {"fork", func(r *recalling, said continuo.Conversation) error {
			_, err := r.Log.Redact(r.t.Context(), said, 3, 4, "")
			return err
		}},
		"in another conversation": {"new", func(r *recalling, said continuo.Conversation) error {
			_, err := r.Log.Redact(r.t.Context(), said, 3, 4, "")
			return err
		}},
		"of another conversation": {"new", func(r *recalling, said continuo.Conversation) error { return r.Log.Delete(r.t.Context(), said.ID) }},
	} {
		t.Run(name, func(t *testing.T) {
			var between func()
			store := storetest.NewMemory()
			r := newInterrupted(t, store, store, func() {
				if run := between; run != nil {
					between = nil
					run()
				}
			})
			said := r.plans("s")
			if _, err := r.Log.Fork(t.Context(), said.ID, 0, continuo.Conversation{Key: "fork"}); err != nil {
				t.Fatal(err)
			}
			r.indexAll()
			removed := false
			between = func() {
				if err := test.remove(r, said); err != nil {
					t.Fatal(err)
				}
				removed = true
			}
			c := r.say(test.session, "anna", gateQuestion)
			if !removed {
				t.Fatal("nothing was recalled")
			}
			for _, entry := range r.entries(c) {
				if strings.Contains(entry.Content.String(), "marmalade") {
					t.Errorf("entry %d still says %q", entry.Seq, entry.Content)
				}
			}
			request, err := r.Contexts.Request(t.Context(), c, c.LastSeq)
			if err != nil || !request.Same || bytes.Contains(request.Body, []byte("marmalade")) {
				t.Errorf("the request, which was the one that was sent: %v, is %s, %v", request.Same, request.Body, err)
			}
		})
	}
}
