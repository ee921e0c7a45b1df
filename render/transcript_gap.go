package render

import (
	"strconv"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// gaps walks along the messages of a transcript and finds where entries are missing between them. An entry is
// missing when the plan dropped it, read or unread; entries that are never shown to a model do not count.
type gaps struct {
	dropped []window.PlanItem
	passed  int64 // newest seq examined so far
	left    int64 // missing entries since the last event
}

// gapsOf returns the gaps of a plan, none for a crew's role, whose text states its own gaps.
func gapsOf(plan *window.Plan) *gaps {
	g := &gaps{}
	if plan.Role != nil {
		return g
	}
	for _, item := range plan.Items {
		if item.Verdict == window.Dropped && item.Role != continuo.System {
			item.Through = max(item.Seq, item.Through)
			g.dropped = append(g.dropped, item)
		}
	}
	return g
}

// total counts the entries that are missing in a range of the log.
func (g *gaps) total(from, through int64) int64 {
	var n int64
	for _, item := range g.dropped {
		n += max(0, min(through, item.Through)-max(from, item.Seq)+1)
	}
	return n
}

// before returns the gap before a unit, and moves past the unit. A summary has no position in the log: it
// replaces a gap. Before a unit without events it returns nothing yet.
func (g *gaps) before(u *transcriptUnit) []Event {
	if u.head.Seq == 0 {
		return nil
	}
	g.pass(u.head.Seq - 1)
	g.passed = max(g.passed, u.through())
	if len(u.events) == 0 {
		return nil
	}
	return g.take()
}

// upTo returns the gap that ends at a seq.
func (g *gaps) upTo(through int64) []Event {
	g.pass(through)
	return g.take()
}

// pass counts the missing entries up to a seq.
func (g *gaps) pass(through int64) {
	g.left += g.total(g.passed+1, through)
	g.passed = max(g.passed, through)
}

func (g *gaps) take() []Event {
	if g.left == 0 {
		return nil
	}
	gap := Event{EventGap, strconv.FormatInt(g.left, 10)}
	g.left = 0
	return []Event{gap}
}

// through is the newest seq that a unit shows.
func (u *transcriptUnit) through() int64 {
	last := u.head.Seq
	for i := range u.results {
		last = max(last, u.results[i].Seq)
	}
	return last
}
