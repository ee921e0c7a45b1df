package engine_test

import (
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/recalls"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/window"
)

// TestADeletedItemIsNotRecalled deletes an item as a client of the gateway does: no request shows it any more by a block, in its
// conversation or in another one, nor does the view recall. Requests of the past and forks from before the deletion have it.
func TestADeletedItemIsNotRecalled(t *testing.T) {
	overStores(t, func(t *testing.T, store maintenance.Store, words index.Store, _ func() string) {
		r := newScoped(t, store, words, lookup.User, 0)
		r.Catalog.Options.Models["demo"] = engine.Upstream{Model: noted{}}
		r.plans("s")
		elsewhere := r.say("elsewhere", "anna", gateQuestion)
		c := r.say("s", "anna", gateQuestion)
		blocks := len(r.blocks(c))
		if blocks == 0 || len(r.blocks(elsewhere)) == 0 {
			t.Fatal("nothing was recalled")
		}
		fork, err := r.Log.Fork(t.Context(), c.ID, 0, continuo.Conversation{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Log.Append(t.Context(), c.ID, []continuo.Entry{continuo.DeletionOf(3, "item")}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		r.replayed(c)
		shows := func(c continuo.Conversation, view string, want bool) {
			t.Helper()
			c, err := r.Log.Conversation(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			shown, err := r.Contexts.Build(t.Context(), c, engine.ContextRequest{View: view, Query: gateQuestion})
			if err != nil {
				t.Fatal(err)
			}
			if has := strings.Contains(fmt.Sprintf("%s", shown.Messages), "marmalade"); has != want {
				t.Errorf("that the view %s of %s has the item is %v", view, c.ID, has)
			}
		}
		for _, view := range []string{window.Continuity, catalog.RecallView} {
			shows(c, view, false)
			shows(fork, view, true)
		}
		for _, block := range r.blocks(elsewhere) {
			t.Errorf("another conversation still shows %s", block.Content)
		}
		for i := range 8 {
			c = r.say("s", "anna", fmt.Sprintf("Stage %d: look for the %s.", i, []string{"station", "hotel"}[i%2]))
		}
		explained, err := r.Contexts.ExplainRecall(t.Context(), c, engine.ContextRequest{View: window.Continuity, Query: gateQuestion}, recalls.ExplainRequest{Seq: 3})
		if err != nil || explained.Entries[0].Outcome != recalls.NotRecallable {
			t.Errorf("it is explained by %+v, %v", explained, err)
		}
		r.indexAll()
		for _, session := range []string{"s", "new"} {
			c = r.say(session, "anna", gateQuestion)
			for _, block := range r.blocks(c) {
				if block.Seq > c.LastSeq-3 && strings.Contains(block.Content.String(), "marmalade") {
					t.Errorf("%s recalls %s", session, block.Content)
				}
			}
		}
	})
}
