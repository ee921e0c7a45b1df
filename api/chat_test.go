package api

import (
	"slices"
	"testing"

	"github.com/continuo-log/continuo/window"
)

// The tags of requests that run a turn list the views of package window.
func TestViewsAreThoseOfTurns(t *testing.T) {
	found := 0
	for _, o := range (&Service{}).Operations() {
		for _, input := range o.Inputs() {
			if input.In != InBody || input.Name != "view" {
				continue
			}
			found++
			if !slices.Equal(input.Enum, window.Names()) {
				t.Errorf("%s takes the views %q, not %q", o.ID, input.Enum, window.Names())
			}
		}
	}
	if found != 2 {
		t.Errorf("%d operations take a view, not chat and resumeTurn", found)
	}
}
