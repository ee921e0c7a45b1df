package window_test

import (
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// agentLog is a log of an agent in memory: each question is followed by rounds of calls, about 1 KB a message. It
// records the window of every answer's request, as turns do, if a view is given.
func agentLog(b *testing.B, messages int, view *window.View) *entries {
	b.Helper()
	l := &entries{}
	line := "A line of text that says something about the task at hand.\n"
	for i := 0; len(l.List) < messages; i++ {
		l.User(strings.Repeat(line, 3+i%5))
		for range i%3 + 1 {
			l.Call(strings.Repeat(line, 20+i%9), strings.Repeat(line, 12))
		}
		if view == nil || len(l.List) < messages-400 {
			l.Assistant(strings.Repeat(line, 10))
			continue
		}
		plan, err := view.Build(l, window.Input{Counter: chars{}})
		if err != nil {
			b.Fatal(err)
		}
		l.answer(strings.Repeat(line, 10), plan)
	}
	l.User("And now?")
	if view != nil { // the request after a move is the one that keeps its window
		plan, err := view.Build(l, window.Input{Counter: chars{}})
		if err != nil {
			b.Fatal(err)
		}
		if plan.Moved {
			l.answer("Wait.", plan)
			l.User("And now?")
		}
	}
	return l
}

// BenchmarkBuild plans a request over entries in memory. "first" fills a first window, "next" keeps the window of the
// view's last request, "move" moves it.
func BenchmarkBuild(b *testing.B) {
	for _, limits := range []struct {
		name string
		window.Limits
	}{
		{"80-messages", window.Limits{Messages: 80}},
		{"defaults", window.Limits{Messages: 80, Chars: 120_000}},
		{"8k-tokens", window.Limits{Tokens: 8000}},
	} {
		view, err := window.DefaultSettings().View(window.Codex)
		if err != nil {
			b.Fatal(err)
		}
		view.Limits = limits.Limits
		first, next := agentLog(b, 1000, nil), agentLog(b, 1000, &view)
		move := agentLog(b, 1000, nil)
		move.List[len(move.List)-2].Round = &continuo.Round{ViewHash: view.Hash(), Window: continuo.Window{Epoch: 3, Start: int64(len(move.List) - 200)}}
		for _, c := range []struct {
			name string
			log  *entries
		}{{"first", first}, {"next", next}, {"move", move}} {
			b.Run(fmt.Sprintf("%s/%s", limits.name, c.name), func(b *testing.B) {
				b.ReportAllocs()
				in := window.Input{At: int64(len(c.log.List)), Counter: chars{}}
				for b.Loop() {
					plan, err := view.Build(c.log, in)
					if err != nil {
						b.Fatal(err)
					}
					if plan.Moved != (c.name != "next") {
						b.Fatalf("the window moved: %v", plan.Moved)
					}
				}
			})
		}
	}
}
