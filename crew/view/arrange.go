package view

import (
	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// arrangement is the content of a request: a layout of the messages, followed by the role's own open turn.
type arrangement struct {
	layout
	turn    []shaped
	turnCut string // the limit that required cutting the turn; "" for none
}

// shaped is a group of the role's own turn at its level of detail, or, without a unit, the marker of a gap.
type shaped struct {
	unit     *window.Unit
	level    window.Level
	messages []window.Message
}

// turnLeftOut replaces the oldest messages of a role's own turn.
const turnLeftOut = moreBegin + " Earlier tool calls of your turn are left out."

// arrange decides what a role is shown, and how the messages of its own turn are cut.
func (p *planner) arrange() (arrangement, error) {
	turn := p.backlog.turn
	// A message that was accepted must not be refused later because an estimate was too low.
	for _, limits := range []window.Limits{p.request.Limits(), p.request.EstimatedLimits()} {
		if a, ok := p.withTurn(p.withoutTurn(limits), limits); ok {
			return a, nil
		}
		if len(turn) == 0 {
			continue
		}
		newest := p.request.Shape(turn[len(turn)-1], window.Line)
		if a, ok := p.withTurn(less(less(limits, newest.Size), p.turnMarker().Size), limits); ok {
			return a, nil
		}
	}
	var user continuo.Size
	if newest := p.backlog.newest; newest != nil {
		user = p.request.Shape(newest.unit, window.Whole).Size
	}
	parts := continuo.OverflowError{NewestUser: user}
	if len(turn) > 0 {
		parts.OpenGroup = p.request.Shape(turn[len(turn)-1], window.Line).Size
	}
	return arrangement{}, p.request.Overflow(p.request.EstimatedLimits(), parts)
}

// withTurn places the messages within room, and the role's own turn after them within limits.
func (p *planner) withTurn(available, limits window.Limits) (arrangement, bool) {
	l, ok := p.layout(available)
	if !ok {
		return arrangement{}, false
	}
	return p.cutTurn(l, limits)
}

// withoutTurn is the part of the limits that the role's own turn leaves: at least the low-water mark.
func (p *planner) withoutTurn(limits window.Limits) window.Limits {
	var taken continuo.Size
	for _, u := range p.backlog.turn {
		taken = taken.Add(p.request.Shape(u, window.Whole).Size)
	}
	low := p.lowered(limits)
	return less(limits, continuo.Size{Chars: min(taken.Chars, limits.Chars-low.Chars), Tokens: min(taken.Tokens, limits.Tokens-low.Tokens)})
}

// turnMarker is the message that marks a gap in the role's own turn.
func (p *planner) turnMarker() window.Message {
	m := window.Message{Role: continuo.User, Content: continuo.Text(turnLeftOut)}
	m.Size = p.request.Measure(&m, false)
	return m
}

// cutTurn cuts the messages of the role's own turn until they fit after a layout: full outputs become previews,
// previews become one line, and then the oldest groups are dropped. It returns false where not even the newest fits.
func (p *planner) cutTurn(l layout, limits window.Limits) (arrangement, bool) {
	shape := func(u *window.Unit, to window.Level) shaped {
		return shaped{unit: u, level: to, messages: p.request.Shape(u, to).Messages}
	}
	sizeOf := func(s shaped) continuo.Size { return p.request.Shape(s.unit, s.level).Size }
	turn := make([]shaped, len(p.backlog.turn))
	total := p.sizeOfLayout(l)
	for i, u := range p.backlog.turn {
		turn[i] = shape(u, window.Whole)
		total = total.Add(sizeOf(turn[i]))
	}
	a := arrangement{layout: l, turnCut: limits.Exceeded(total)}
	for _, to := range []window.Level{window.Preview, window.Line} {
		for i := 0; i < len(turn) && limits.Exceeded(total) != ""; i++ {
			cut := shape(turn[i].unit, to)
			total = total.Less(sizeOf(turn[i])).Add(sizeOf(cut))
			turn[i] = cut
		}
	}
	marker := p.turnMarker()
	for dropped := 0; len(turn) > 1 && limits.Exceeded(total) != ""; dropped++ {
		if dropped == 0 {
			total = total.Add(marker.Size)
		}
		total = total.Less(sizeOf(turn[0]))
		turn = turn[1:]
	}
	if len(turn) < len(p.backlog.turn) {
		turn = append([]shaped{{messages: []window.Message{marker}}}, turn...)
	}
	a.turn = turn
	return a, limits.Exceeded(total) == ""
}
