package window_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// replay bounds the messages of a conversation whose cycle is over
func TestReplayBoundsTheMessagesOfHistory(t *testing.T) {
	for n := 1; n < 20; n++ {
		l := &entries{}
		l.User("first")
		l.Assistant("x")
		l.User("do it")
		for range n {
			l.Call("out")
		}
		l.Assistant("done")
		p := l.build(t, defaultView(t, window.Replay))
		if p.Totals.Messages > 15 {
			t.Errorf("%d groups: %d messages of history, the bound is 15: %+v", n, p.Totals.Messages, p.Window)
		}
	}
}

func TestReplayResultsOfAFinishedCycle(t *testing.T) {
	l := &entries{}
	l.User("do it")
	for range 10 {
		l.Call(strings.Repeat("result ", 50))
	}
	l.Assistant("done")
	p := l.build(t, defaultView(t, window.Replay))
	for _, m := range p.Messages {
		if m.Role == continuo.Tool && strings.Contains(m.Content.String(), "left out") {
			t.Fatalf("replay has no limit on characters, but: %s (%+v)", m.Content, p.Limits)
		}
	}
}
