package window_test

import (
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

func defaultView(t *testing.T, name string) window.View {
	v, err := window.DefaultSettings().View(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// a hidden event first, then a plain conversation: plan items may not overlap
func TestAHiddenFirstEntryIsNoOpener(t *testing.T) {
	l := &entries{}
	l.Add(continuo.Entry{Role: continuo.System, Content: continuo.Text("session began"), Hidden: true})
	for i := range 40 {
		l.User(fmt.Sprintf("u%d", i))
		l.Assistant(fmt.Sprintf("a%d", i))
	}
	l.User("last")
	p := l.build(t, defaultView(t, window.Continuity)) // check() adds the items up
	if p.Messages[0].Content.String() != "u0" {
		t.Errorf("begins with %q, not with the opener", p.Messages[0].Content.String())
	}
}

// the same, with a long open cycle: the window may not move with every request
func TestALongCycleMovesRarely(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		l := &entries{}
		if hidden {
			l.Add(continuo.Entry{Role: continuo.System, Content: continuo.Text("session began"), Hidden: true})
		}
		l.User("do it")
		v := defaultView(t, window.Continuity)
		moves := 0
		for range 60 {
			p := l.build(t, v)
			if p.Moved {
				moves++
			}
			l.Call("out")
			l.List[len(l.List)-2].Round = &continuo.Round{View: p.View, ViewHash: p.ViewHash, At: p.At, Window: p.Window}
		}
		t.Logf("hidden %v: %d moves", hidden, moves)
		if hidden && moves > 10 {
			t.Errorf("%d moves in 60 rounds", moves)
		}
	}
}

// a round that a client gave (POST entries accepts it)
func TestAWindowThatAClientMadeUp(t *testing.T) {
	for name, given := range map[string]continuo.Window{
		"pins twice":           {Epoch: 1, Start: 4, Pins: []int64{1, 1, 3, 3}},
		"pins out of order":    {Epoch: 1, Start: 4, Pins: []int64{3, 1}},
		"pins in the window":   {Epoch: 1, Start: 1, Pins: []int64{3}},
		"a start below 1":      {Epoch: -7, Start: -5},
		"a start past the end": {Epoch: 1, Start: 99},
	} {
		t.Run(name, func(t *testing.T) {
			v := defaultView(t, window.Continuity)
			l := &entries{}
			l.User("hi")
			l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("hello"), Round: &continuo.Round{ViewHash: v.Hash(), Window: given}})
			l.User("question")
			p, err := v.Build(l, window.Input{At: 3, Counter: chars{}})
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, m := range p.Messages {
				texts = append(texts, m.Content.String())
			}
			if got := strings.Join(texts, "|"); strings.Count(got, "question") != 1 || strings.Count(got, "hi") != 1 {
				t.Errorf("the request is %s", got)
			}
		})
	}
}

// a gap of hidden entries only is no gap
func TestHiddenEntriesAreNoGap(t *testing.T) {
	l := &entries{}
	l.Add(continuo.Entry{Role: continuo.System, Content: continuo.Text("session began"), Hidden: true})
	l.User("first")
	for i := range 40 {
		l.Assistant(fmt.Sprintf("a%d", i))
		l.User(fmt.Sprintf("u%d", i))
	}
	p, _ := defaultView(t, window.Continuity).Build(l, window.Input{At: int64(len(l.List)), Counter: chars{}})
	if p.Messages[0].Seq == 0 && p.Messages[1].Seq == 2 {
		t.Errorf("a marker stands before the first message: %q, %q", p.Messages[0].Content.String(), p.Messages[1].Content.String())
	}
}

// the opener is a group of many calls
func TestAnOpenerThatIsAGroup(t *testing.T) {
	l := &entries{}
	var outs []string
	for range 20 {
		outs = append(outs, strings.Repeat("o", 300))
	}
	l.Call(outs...)
	v := defaultView(t, window.Continuity)
	moves := 0
	for i := range 200 {
		l.User(fmt.Sprintf("u%d", i))
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
func TestTheFirstCycleMovesRarely(t *testing.T) {
	for _, first := range []bool{true, false} {
		l := &entries{}
		if !first {
			l.User("hello")
			l.Assistant("hi")
		}
		l.User("do it")
		v := defaultView(t, window.Continuity)
		moves := 0
		var starts []int64
		for range 100 {
			p := l.build(t, v)
			if p.Moved {
				moves++
			}
			starts = append(starts, p.Window.Start)
			l.Call("out")
			l.List[len(l.List)-2].Round = &continuo.Round{View: p.View, ViewHash: p.ViewHash, At: p.At, Window: p.Window}
		}
		t.Logf("newest user is the first entry %v: %d moves in 100 rounds: %v", first, moves, starts)
		if moves > 15 {
			t.Errorf("%d moves", moves)
		}
	}
}
