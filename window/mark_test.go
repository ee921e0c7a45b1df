package window_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// replayed is what requests of a growing conversation held.
type replayed struct {
	requests, moves int
	tokens, resent  int // in all requests; in those that moved the window
}

func (r replayed) mean() float64 { return float64(r.tokens) / float64(r.requests) }

// replay asks and answers, of which some are long, and records each window as turns do.
func replay(t *testing.T, view window.View, prices continuo.CachePrices) (r replayed, l *entries) {
	t.Helper()
	random := rand.New(rand.NewPCG(18, 3))
	l = &entries{}
	for i := range 400 {
		long := 1
		if random.IntN(8) == 0 {
			long = 12
		}
		l.User(strings.Repeat(fmt.Sprintf("question %d ", i), 3+random.IntN(10)))
		in := window.Input{At: int64(len(l.List)), Counter: chars{}, Prices: prices}
		plan, err := view.Build(l, in)
		if err != nil {
			t.Fatal(err)
		}
		check(t, plan, view)
		r.requests++
		r.tokens += plan.Totals.Tokens
		if plan.Moved {
			r.moves++
			r.resent += plan.Totals.Tokens
			if again, err := view.Build(l, in); err != nil || !reflect.DeepEqual(again, plan) {
				t.Fatalf("request %d: the same log gives another plan; %v", i, err)
			}
		}
		l.answer(strings.Repeat("an answer. ", long*(5+random.IntN(20))), plan)
	}
	return r, l
}

func TestMovesAreDecidedByWhatTheyCost(t *testing.T) {
	for name, limits := range map[string]window.Limits{"tokens": {Tokens: 2000}, "messages": {Messages: 40}} {
		t.Run(name, func(t *testing.T) {
			priced := preset(t, window.Codex, limits)
			if !priced.Priced {
				t.Fatal("the moves of the preset are not priced")
			}
			fixed := priced
			fixed.Priced = false
			plain, _ := replay(t, fixed, continuo.CachePrices{})
			chosen, l := replay(t, priced, continuo.CachePrices{})
			cheap, _ := replay(t, priced, continuo.CachePrices{Read: 800_000, Write: 1_000_000})
			dear, _ := replay(t, priced, continuo.CachePrices{Read: 100_000, Write: 1_250_000})
			if chosen.mean() < 0.99*plain.mean() {
				t.Errorf("the mean window has %.0f tokens, with a fixed mark %.0f", chosen.mean(), plain.mean())
			}
			if cheap.mean() <= chosen.mean() || cheap.moves <= chosen.moves {
				t.Errorf("where moves cost little the mean window has %.0f tokens and moves %d times; usually %.0f and %d", cheap.mean(), cheap.moves, chosen.mean(), chosen.moves)
			}
			if dear != chosen {
				t.Errorf("where moves cost more than usual windows differ: %+v, not %+v", dear, chosen)
			}
			if grown := l.List[len(l.List)-1].Round.Window.Growth; grown < 20 || grown > 400 {
				t.Errorf("the conversation is said to grow by %d tokens", grown)
			}
		})
	}
}

// A fixed mark and a first window depend on no price.
func TestAFixedMarkHasNoPrice(t *testing.T) {
	view := preset(t, window.Codex, window.Limits{Tokens: 2000})
	view.Priced = false
	one, l := replay(t, view, continuo.CachePrices{})
	other, _ := replay(t, view, continuo.CachePrices{Read: 1_000_000, Write: 1_000_000})
	if one != other {
		t.Errorf("windows differ: %+v and %+v", one, other)
	}
	for _, e := range l.List {
		if e.Round != nil && e.Round.Window.Growth != 0 {
			t.Fatalf("entry %d records how the conversation grows", e.Seq)
		}
	}
}

// reporting answers with the report of a provider that counts a part of what was estimated.
func (l *entries) reporting(plan *window.Plan, part float64) {
	l.answer("answer", plan)
	round := l.List[len(l.List)-1].Round
	round.Provider, round.Model, round.EstimatedTokens = "p", "m", plan.Totals.Tokens
	if plan.Correction != nil {
		round.Correction = *plan.Correction
	}
	round.Usage = &continuo.Usage{InputTokens: int(part * float64(plan.Totals.Tokens))}
}

func TestBudgetsAreKeptOnTheProvidersCount(t *testing.T) {
	for _, part := range []float64{0.7, 1, 1.5} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			view := preset(t, window.Codex, window.Limits{Tokens: 1000})
			view.LowWater, view.Priced = 1, false
			l := &entries{}
			var last *window.Plan
			for i := range 60 {
				l.User(strings.Repeat("word ", 20+i%7))
				plan, err := view.Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}, Provider: "p", Model: "m", Estimated: true})
				if err != nil {
					t.Fatal(err)
				}
				l.reporting(plan, part)
				if counted := l.List[len(l.List)-1].Round.Usage.InputTokens; i > 0 && counted > 1000 {
					t.Errorf("request %d: the provider counts %d of 1 000 tokens", i, counted)
				}
				last = plan
			}
			counted := l.List[len(l.List)-1].Round.Usage.InputTokens
			if counted < 940 {
				t.Errorf("of 1 000 tokens the provider counts %d", counted)
			}
			if got := last.Totals.CorrectedTokens; last.Correction == nil || got < counted*97/100 || got > counted*103/100 {
				t.Errorf("%d tokens are expected and %d counted: %+v", got, counted, last.Correction)
			}
		})
	}
}

func TestReportsOfOtherModelsCorrectNothing(t *testing.T) {
	view := preset(t, window.Codex, window.Limits{Tokens: 1000})
	l := &entries{}
	l.User("question")
	l.reporting(l.build(t, view), 2)
	l.User("question")
	for _, in := range []window.Input{{Provider: "p", Model: "other", Estimated: true}, {Provider: "other", Model: "m", Estimated: true}, {Provider: "p", Model: "m"}} {
		in.At, in.Counter = 3, chars{}
		plan, err := view.Build(l, in)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Correction != nil || plan.Totals.CorrectedTokens != 0 || plan.Limits.Tokens != 1000 {
			t.Errorf("the plan for %s/%s is corrected: %+v, limits %+v", in.Provider, in.Model, plan.Correction, plan.Limits)
		}
	}
}
