package window_test

import (
	"errors"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

func threeMessages() *entries {
	l := &entries{}
	l.User("one")
	l.Assistant("two")
	l.User("three")
	return l
}

func TestWithoutAtTheNewestEntryIsMeant(t *testing.T) {
	view := preset(t, window.Codex, window.Limits{})
	plan, err := view.Build(threeMessages(), window.Input{Counter: chars{}})
	if err != nil {
		t.Fatal(err)
	}
	if shown := strings.Join(texts(plan), "|"); plan.At != 3 || plan.Totals.Entries != 3 || shown != "one|two|three" {
		t.Errorf("at %d of %d entries it shows %q", plan.At, plan.Totals.Entries, shown)
	}
	if plan, err := view.Build(&entries{}, window.Input{}); err != nil || plan.At != 0 || len(plan.Messages) != 0 {
		t.Errorf("of an empty log: %+v, %v", plan, err)
	}
}

func TestAnAtThatTheSourceDoesNotHaveIsRefused(t *testing.T) {
	view := preset(t, window.Codex, window.Limits{})
	for _, at := range []int64{-1, 4, 1000} {
		_, err := view.Build(threeMessages(), window.Input{At: at, Counter: chars{}})
		if !errors.Is(err, continuo.ErrBadRange) || !strings.Contains(err.Error(), "entries 1 to 3") {
			t.Errorf("at %d: %v", at, err)
		}
	}
	if _, err := view.Build(&entries{}, window.Input{At: 1, Counter: chars{}}); !errors.Is(err, continuo.ErrBadRange) {
		t.Errorf("of an empty log: %v", err)
	}
}

// A source may have more entries by now than those that the build considers.
func TestABuildShowsNothingBehindAt(t *testing.T) {
	source, _, err := window.Begin(threeMessages(), window.Input{At: 2})
	if err != nil {
		t.Fatal(err)
	}
	var seqs []int64
	for entry, err := range source.Forward(1) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, entry.Seq)
	}
	for range source.Forward(3) {
		seqs = append(seqs, 3)
	}
	if len(seqs) != 2 {
		t.Errorf("forward it shows %d", seqs)
	}
}

func TestWithoutACounterTokensAreEstimated(t *testing.T) {
	view := preset(t, window.Codex, window.Limits{})
	rough, err := view.Build(threeMessages(), window.Input{At: 3, Counter: continuo.RoughCounter{}, Estimated: true})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := view.Build(threeMessages(), window.Input{At: 3})
	if err != nil || plan.Totals != rough.Totals || plan.Totals.Tokens == 0 {
		t.Errorf("got %+v, %v, want %+v", plan, err, rough.Totals)
	}
	if err := view.CheckFits(window.Input{ModelWindow: 10_000}, continuo.Text("hello")); err != nil {
		t.Error(err)
	}
}

func TestABuildNeedsASourceAndAViewThatCanShowSomething(t *testing.T) {
	if _, err := preset(t, window.Codex, window.Limits{}).Build(nil, window.Input{At: 1}); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("without a source: %v", err)
	}
	if err := (window.View{}).CheckFits(window.Input{}, continuo.Text("hello")); !errors.Is(err, continuo.ErrInvalid) ||
		!strings.HasPrefix(err.Error(), "view without a name: ") {
		t.Errorf("a view without a low-water mark: %v", err)
	}
}
