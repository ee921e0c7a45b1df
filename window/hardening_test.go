package window_test

import (
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

func rView(t *testing.T, name string) window.View {
	v, err := window.DefaultSettings().View(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// a hidden event first, then a plain conversation: plan items may not overlap
func TestHiddenFirstItems(t *testing.T) {
	l := &entries{}
	l.add(continuo.Entry{Role: continuo.System, Content: continuo.Text("session began"), Hidden: true})
	for i := range 40 {
		l.user(fmt.Sprintf("u%d", i))
		l.assistant(fmt.Sprintf("a%d", i))
	}
	l.user("last")
	p := l.build(t, rView(t, window.Continuity)) // check() adds the items up
	if p.Messages[0].Content.String() != "u0" {
		t.Errorf("begins with %q, not with the opener", p.Messages[0].Content.String())
	}
}

// the same, with a long open cycle: the window may not move with every request
func TestHiddenFirstMoves(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		l := &entries{}
		if hidden {
			l.add(continuo.Entry{Role: continuo.System, Content: continuo.Text("session began"), Hidden: true})
		}
		l.user("do it")
		v := rView(t, window.Continuity)
		moves := 0
		for range 60 {
			p := l.build(t, v)
			if p.Moved {
				moves++
			}
			l.call("out")
			l.list[len(l.list)-2].Round = &continuo.Round{View: p.View, ViewHash: p.ViewHash, At: p.At, Window: p.Window}
		}
		t.Logf("hidden %v: %d moves", hidden, moves)
		if hidden && moves > 10 {
			t.Errorf("%d moves in 60 rounds", moves)
		}
	}
}

// replay bounds the messages of a conversation whose cycle is over
func TestReplayHistory(t *testing.T) {
	for n := 1; n < 20; n++ {
		l := &entries{}
		l.user("first")
		l.assistant("x")
		l.user("do it")
		for range n {
			l.call("out")
		}
		l.assistant("done")
		p := l.build(t, rView(t, window.Replay))
		if p.Totals.Messages > 15 {
			t.Errorf("%d groups: %d messages of history, the bound is 15: %+v", n, p.Totals.Messages, p.Window)
		}
	}
}

func TestCheckFitsThenBuild(t *testing.T) {
	v := rView(t, window.Continuity)
	l := &entries{}
	l.user("hi")
	l.add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("hello"), Round: &continuo.Round{Provider: "p", Model: "m", EstimatedTokens: 100, Usage: &continuo.Usage{InputTokens: 200}}})
	text := strings.Repeat("abcd", 4000) // 4 000 of 6 000 tokens
	in := window.Input{Counter: chars{}, Provider: "p", Model: "m", Estimated: true}
	if err := v.CheckFits(in, continuo.Text(text)); err != nil {
		return // it is refused, which is as good
	}
	l.user(text)
	in.At = 3
	if _, err := v.Build(l, in); err != nil {
		t.Errorf("CheckFits let it through, Build refuses: %v", err)
	}
}

// a round that a client gave (POST entries accepts it)
func TestForeignWindow(t *testing.T) {
	for _, w := range []window1{
		{"pins twice", continuo.Window{Epoch: 1, Start: 4, Pins: []int64{1, 1, 3, 3}}},
		{"pins unordered", continuo.Window{Epoch: 1, Start: 4, Pins: []int64{3, 1}}},
		{"pins inside", continuo.Window{Epoch: 1, Start: 1, Pins: []int64{3}}},
		{"start negative", continuo.Window{Epoch: -7, Start: -5}},
	} {
		v := rView(t, window.Continuity)
		l := &entries{}
		l.user("hi")
		l.add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("hello"), Round: &continuo.Round{ViewHash: v.Hash(), Window: w.w}})
		l.user("question")
		p, err := v.Build(l, window.Input{At: 3, Counter: chars{}})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, m := range p.Messages {
			texts = append(texts, m.Content.String())
		}
		if got := strings.Join(texts, "|"); strings.Count(got, "question") != 1 || strings.Count(got, "hi") != 1 {
			t.Errorf("%s: %s", w.name, got)
		} else {
			t.Logf("%s: %s", w.name, got)
		}
	}
}

type window1 struct {
	name string
	w    continuo.Window
}

// a gap of hidden entries only is no gap
func TestMarkerForHidden(t *testing.T) {
	l := &entries{}
	l.add(continuo.Entry{Role: continuo.System, Content: continuo.Text("session began"), Hidden: true})
	l.user("first")
	for i := range 40 {
		l.assistant(fmt.Sprintf("a%d", i))
		l.user(fmt.Sprintf("u%d", i))
	}
	p, _ := rView(t, window.Continuity).Build(l, window.Input{At: int64(len(l.list)), Counter: chars{}})
	if p.Messages[0].Seq == 0 && p.Messages[1].Seq == 2 {
		t.Errorf("a marker stands before the first message: %q, %q", p.Messages[0].Content.String(), p.Messages[1].Content.String())
	}
}

// the opener is a group of many calls
func TestOpenerGroup(t *testing.T) {
	l := &entries{}
	var outs []string
	for range 20 {
		outs = append(outs, strings.Repeat("o", 300))
	}
	l.call(outs...)
	v := rView(t, window.Continuity)
	moves := 0
	for i := range 200 {
		l.user(fmt.Sprintf("u%d", i))
		p := l.build(t, v)
		if p.Moved {
			moves++
		}
		l.answer("a", p)
	}
	if moves == 0 || moves > 40 {
		t.Errorf("%d moves in 200 rounds", moves)
	}
}

// an agent's long first cycle: window positions over rounds, and what of each request extends the last
func TestFirstCycleMoves(t *testing.T) {
	for _, first := range []bool{true, false} {
		l := &entries{}
		if !first {
			l.user("hello")
			l.assistant("hi")
		}
		l.user("do it")
		v := rView(t, window.Continuity)
		moves := 0
		var starts []int64
		for range 100 {
			p := l.build(t, v)
			if p.Moved {
				moves++
			}
			starts = append(starts, p.Window.Start)
			l.call("out")
			l.list[len(l.list)-2].Round = &continuo.Round{View: p.View, ViewHash: p.ViewHash, At: p.At, Window: p.Window}
		}
		t.Logf("newest user is the first entry %v: %d moves in 100 rounds: %v", first, moves, starts)
		if moves > 15 {
			t.Errorf("%d moves", moves)
		}
	}
}

func TestReplayResultsOfAFinishedCycle(t *testing.T) {
	l := &entries{}
	l.user("do it")
	for range 10 {
		l.call(strings.Repeat("result ", 50))
	}
	l.assistant("done")
	p := l.build(t, rView(t, window.Replay))
	for _, m := range p.Messages {
		if m.Role == continuo.Tool && strings.Contains(m.Content.String(), "left out") {
			t.Fatalf("replay has no limit on characters, but: %s (%+v)", m.Content, p.Limits)
		}
	}
}
