package main

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// handMade are the figures of windows written by hand, by how far they are cut back, ascending in their mean size.
type handMade []struct{ mean, cost float64 }

// byHand replays windows of a limit that keep the newest whole units, and are cut back to a share of the limit.
func byHand(all []*conversation, limits window.Limits, p prices) handMade {
	var made handMade
	for share := 0.1; share < 0.96; share += 0.05 {
		var f figures
		for _, c := range all {
			f.add(c.kept(limits, share))
		}
		made = append(made, struct{ mean, cost float64 }{f.mean(), f.cost(p) / float64(f.requests)})
	}
	slices.SortFunc(made, func(a, b struct{ mean, cost float64 }) int {
		if a.mean < b.mean {
			return -1
		}
		return 1
	})
	return made
}

// costAt is the cost of a request at a mean size, between those of the two nearest ones.
func (h handMade) costAt(mean float64) float64 {
	i := 1
	for i < len(h)-1 && h[i].mean < mean {
		i++
	}
	a, b := h[i-1], h[i]
	if b.mean == a.mean {
		return b.cost
	}
	return a.cost + (mean-a.mean)/(b.mean-a.mean)*(b.cost-a.cost)
}

// kept replays a window that keeps whole units from a start on, and moves when it is over the limit.
func (c *conversation) kept(limits window.Limits, share float64) (f figures) {
	view, _ := window.DefaultSettings().View(window.Codex)
	request := window.NewRequest(view, "", window.Input{Counter: token.O200k()})
	units := unitsOf(view, c.all)
	var sizes []continuo.Size
	start, shown := 0, continuo.Size{} // the window, which ends before the unit that is read
	cached := 0.0                      // tokens of the last request
	lower := limits.Lowered(share, continuo.Size{}, continuo.Size{})
	for i, u := range units {
		if u.Entries[0].Role == continuo.Assistant && i > 0 {
			f.requests++
			extends := cached
			if limits.Exceeded(shown) != "" {
				start, shown, extends = i, continuo.Size{}, 0
				for start > 0 && (start == i || lower.Exceeded(shown.Add(sizes[start-1])) == "") {
					start--
					shown = shown.Add(sizes[start])
				}
				f.moves++
			}
			f.tokens += float64(shown.Tokens)
			f.cached += extends
			cached = float64(shown.Tokens)
		}
		sizes = append(sizes, request.Size(u, window.Whole))
		shown = shown.Add(sizes[i])
	}
	return f
}

// unitsOf are the units of a log, oldest first.
func unitsOf(view window.View, entries []continuo.Entry) (units []*window.Unit) {
	assemble := window.NewAssembler(view)
	for i := range slices.Backward(entries) {
		if u := assemble.Add(&entries[i]); u != nil {
			units = append(units, u)
		}
	}
	slices.Reverse(units)
	return units
}
