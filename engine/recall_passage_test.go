package engine_test

import (
	"errors"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/window"
)

// TestTheViewRecallShowsPassages: an entry that does not fit is shown by the part that the query needs.
func TestTheViewRecallShowsPassages(t *testing.T) {
	r := newRecalling(t, 0)
	filler := strings.Repeat("The weather of the coast changes all the time, as people there say. ", 20)
	c := r.say("s", "anna", filler+"The password of the harbour gate in Lisbon is marmalade. "+filler)
	limit := 120
	for _, passages := range []bool{false, true} {
		shown, err := r.Contexts.Build(t.Context(), c, engine.ContextRequest{
			View: catalog.RecallView, Query: "What is the password of the harbour gate?", MaxTokens: &limit, Passages: passages,
		})
		if err != nil {
			t.Fatal(err)
		}
		var text string
		if len(shown.Plan.Messages) > 0 {
			text = shown.Plan.Messages[0].Content.String()
		}
		if strings.Contains(text, "marmalade") != passages {
			t.Errorf("passages %v: shown is %q", passages, text)
		}
		if !passages {
			continue
		}
		if size := shown.Plan.Messages[0].Size.Tokens; size > limit {
			t.Errorf("%d tokens: %q", size, text)
		}
		for _, item := range shown.Plan.Items {
			if item.Recall != nil && item.Seq == 1 && !item.Recall.Passage {
				t.Errorf("the plan has the whole entry: %+v", item)
			}
		}
	}
	if _, err := r.Contexts.Build(t.Context(), c, engine.ContextRequest{View: window.Continuity, Query: "What?", Passages: true}); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("passages in another view: %v, want ErrInvalid", err)
	}
}
