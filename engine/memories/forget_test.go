package memories_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/maintenance"
)

// TestForgettingLeavesNoCopy: a fact that was confirmed, and one that a pattern rests on, is nowhere in the memory afterwards.
func TestForgettingLeavesNoCopy(t *testing.T) {
	stores(t, func(t *testing.T, store maintenance.Store) {
		log, m := newMemories(store)
		for _, day := range []string{"Monday", "Tuesday", "Friday"} {
			say(t, log, "", "I prefer tea on "+day+".", "Always answer shortly on "+day+".", "Answer shortly, please, on "+day+".", "I live in Oslo.")
		}
		if derived, err := m.Derive(t.Context(), scope, nobody); err != nil || len(derived) == 0 {
			t.Fatalf("derived %+v: %v", derived, err)
		}
		for _, text := range []string{"Always answer shortly on Tuesday", "I live in Oslo"} {
			var fact memories.Fact
			for _, one := range exportOf(t, m, nobody).Facts {
				if one.Text == text {
					fact = one
				}
			}
			confirmed, err := m.Correct(t.Context(), scope, fact.ID, memories.Statement{Text: fact.Text, Sources: fact.Sources})
			if err == nil {
				err = m.Forget(t.Context(), scope, nobody, confirmed.ID, false)
			}
			if err != nil {
				t.Fatal(err)
			}
			if data, _ := json.Marshal(exportOf(t, m, nobody)); strings.Contains(string(data), text) {
				t.Errorf("%q is forgotten, and the memory has %s", text, data)
			}
		}
	})
}
