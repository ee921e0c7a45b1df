package window

import (
	"math"
	"slices"
	"sort"

	continuo "github.com/continuo-log/continuo"
)

// layout says what a role is shown: the messages from first on, and what stands in the place of those before.
type layout struct {
	window  continuo.Window
	moved   bool
	first   int             // index of the first message
	standIn *continuo.Entry // summary, notes or catch-up; nil for none
	cut     string          // what is shown of the newest message; "" where it is whole
	tight   bool            // blocks have the least room
}

// place decides where the window stands: where it stood, if that fits, else where a move puts it.
func (p *rolePlanner) place(limits budget) (layout, bool) {
	if l, ok := p.stay(limits); ok {
		return l, true
	}
	return p.move(limits)
}

// stay is the layout of the window before, with what was said since. It reports false where the window has to move.
func (p *rolePlanner) stay(limits budget) (layout, bool) {
	w := p.log.previous
	if w == nil || p.log.top > w.Start {
		return layout{}, false
	}
	l := layout{window: *w, first: p.indexFrom(w.Start), standIn: p.log.standIn(w.Summary)}
	shown := len(p.log.messages) - l.first
	newer := p.usualStandIn()
	switch {
	case w.Summary != 0 && l.standIn == nil: // it was redacted since
		return l, false
	case p.role.Kind == RoleMemory && newer != l.standIn:
		return l, false
	case p.role.Kind == RoleSummary && newer != l.standIn && shown > p.role.Newest+p.role.growth():
		return l, false
	case len(p.skipped(l)) > 0:
		return l, false
	}
	return l, p.fits(l, limits, p.most)
}

// move puts the window where it leaves room for many turns. What is new is shown as long as it fits into the limits; of
// what was seen before as much as the low-water mark allows, or the limits where the room above the mark would not hold
// another turn like this one, or where there was no window before.
func (p *rolePlanner) move(limits budget) (layout, bool) {
	target, most := limits, p.most
	if p.log.previous != nil && !p.outgrows(limits) {
		target, most = p.lowered(limits), p.loweredMost()
	}
	l := p.fill(p.usualStandIn(), limits, target, most)
	if catchUp := p.catchUp(); l.standIn == nil && catchUp != nil && len(p.newLeftOut(l)) > 0 {
		l = p.fill(catchUp, limits, limits, p.most)
	}
	if n := len(p.log.messages); l.first == n && p.wanted(l.standIn) < n || !p.fits(l, limits, p.most) {
		var ok bool
		if l, ok = p.squeeze(l, limits); !ok {
			return l, false
		}
	}
	p.record(&l, limits)
	return l, true
}

// fill is the layout with as many messages as the target holds, and with all that are new if the limits hold them.
func (p *rolePlanner) fill(standIn *continuo.Entry, limits, target budget, targetMost int) layout {
	n := len(p.log.messages)
	l := layout{standIn: standIn}
	wanted := p.wanted(standIn)
	reach := func(limits budget, most int) int {
		fits := func(first int) bool {
			l.first = first
			return p.fits(l, limits, most)
		}
		first := wanted + sort.Search(n-wanted, func(i int) bool { return fits(wanted + i) })
		for first < n && !fits(first) { // a block may stand in the place of what goes
			first++
		}
		return first
	}
	first := reach(target, targetMost)
	if fresh := p.firstNew(); first > fresh {
		first = max(reach(limits, p.most), fresh)
	}
	l.first = first
	return l
}

// squeeze shows the newest message, cut where it is not the newest of the user, and the least of everything else.
func (p *rolePlanner) squeeze(l layout, limits budget) (layout, bool) {
	n := len(p.log.messages)
	l.first = max(n-1, 0)
	for _, l.tight = range []bool{false, true} {
		if l.cut = ""; p.fits(l, limits, 0) {
			return l, true
		}
		if n == 0 || p.log.messages[n-1] == p.log.newest {
			continue
		}
		body, ok := cutTo(p.log.messages[n-1].said, limits, func(body string) bool {
			l.cut = body
			return p.fits(l, limits, 0)
		})
		if l.cut = body; ok {
			return l, true
		}
	}
	return l, false
}

// record writes down where a move has put the window.
func (p *rolePlanner) record(l *layout, limits budget) {
	log := p.log
	l.window = continuo.Window{Epoch: 1, Start: log.end + 1, Left: p.left(*l)}
	leftOut := l.first > 0 || log.top > p.role.Since+1
	switch {
	case !leftOut:
		l.window.Start = p.role.Since + 1
	case l.first < len(log.messages):
		l.window.Start = log.messages[l.first].seq()
	}
	if l.standIn != nil {
		l.window.Summary = l.standIn.Seq
	}
	if leftOut {
		l.window.Limit = p.binding(limits)
	}
	if l.moved = p.role.epochs() && leftOut; log.previous != nil {
		l.window.Epoch, l.moved = log.previous.Epoch+1, true
	}
}

// binding names the limit for which messages are left out; "" where it is none.
func (p *rolePlanner) binding(limits budget) string {
	if p.most > 0 && len(p.log.messages) > p.most {
		return limitMessages
	}
	return limits.exceeded(p.size(layout{}))
}

// wanted is the index of the first message that the view shows if it fits.
func (p *rolePlanner) wanted(standIn *continuo.Entry) int {
	n := len(p.log.messages)
	switch kind := p.role.Kind; {
	case p.role.Whole || kind == RoleFull:
		return 0
	case p.onlyNew(standIn):
		return p.indexFrom(p.role.Cursor + 1)
	case kind == RoleWindow && p.role.Newest == 0:
		return p.firstNew()
	case kind == RoleMemory && standIn != nil:
		return min(p.firstNew(), p.indexFrom(standIn.Summary.Through+1))
	case kind == RoleSummary && standIn != nil:
		return min(p.firstNew(), p.indexFrom(standIn.Summary.Through+1), max(n-p.role.Newest, 0))
	}
	return 0
}

// onlyNew reports whether the view shows nothing that the role has seen.
func (p *rolePlanner) onlyNew(standIn *continuo.Entry) bool {
	kind := p.role.Kind
	return !p.role.Whole && (kind == RoleDelta || kind == RoleMemory && p.role.Remembers && standIn == nil)
}

// usualStandIn is what the view shows in the place of what is old: the role's notes, or the summary that reaches
// furthest. Nil for none, and for a view that shows neither.
func (p *rolePlanner) usualStandIn() *continuo.Entry {
	switch p.role.Kind {
	case RoleMemory:
		return p.log.standIn(p.role.Notes)
	case RoleSummary:
		var best *continuo.Entry
		for _, e := range p.log.standIns {
			if best == nil || e.Summary.Through > best.Summary.Through {
				best = e
			}
		}
		return best
	}
	return nil
}

// catchUp is the newest catch-up of what the role has not been shown; nil for none.
func (p *rolePlanner) catchUp() *continuo.Entry {
	for _, e := range p.log.standIns {
		if IsCatchUp(e, p.role.Name) && e.Summary.Through > p.role.Cursor {
			return e
		}
	}
	return nil
}

// outgrows reports whether what is new in one turn is more than a move to the low-water mark would leave room for.
func (p *rolePlanner) outgrows(limits budget) bool {
	var fresh continuo.Size
	count := 1 // its own answer
	for _, m := range p.log.messages {
		if m.isNew {
			fresh = fresh.Add(m.size)
			count++
		}
	}
	low := p.lowered(limits)
	room := budget{Limits{Chars: limits.Chars - low.Chars, Tokens: limits.Tokens - low.Tokens}}
	over := func(limit, room, size int) bool { return limit > 0 && size > room }
	return p.most > 0 && count > p.most-p.loweredMost() ||
		over(limits.Chars, room.Chars, fresh.Chars) || over(limits.Tokens, room.Tokens, fresh.Tokens)
}

// lowered is the low-water mark of limits.
func (p *rolePlanner) lowered(limits budget) budget {
	return limits.lowered(p.base.view.LowWater, continuo.Size{}, continuo.Size{})
}

// loweredMost is the low-water mark of the number of messages.
func (p *rolePlanner) loweredMost() int {
	return int(math.Ceil(p.base.view.LowWater * float64(p.most)))
}

// indexFrom is the index of the first message from a seq on.
func (p *rolePlanner) indexFrom(seq int64) int {
	return sort.Search(len(p.log.messages), func(i int) bool { return p.log.messages[i].seq() >= seq })
}

// firstNew is the index of the first message that is new to the role, or how many there are.
func (p *rolePlanner) firstNew() int {
	if i := slices.IndexFunc(p.log.messages, func(m *roleMessage) bool { return m.isNew }); i >= 0 {
		return i
	}
	return len(p.log.messages)
}

// covers reports whether a layout shows something that stands for an entry.
func (l layout) covers(seq int64) bool {
	return l.standIn != nil && l.standIn.Summary.From <= seq && seq <= l.standIn.Summary.Through
}

// shows reports whether a layout has a message among those that it shows in their order.
func (p *rolePlanner) shows(l layout, m *roleMessage) bool {
	return l.first < len(p.log.messages) && m.seq() >= p.log.messages[l.first].seq() && m.seq() <= p.log.end
}

// isRequest reports whether a message is the original request or the current one, which are always shown.
func (p *rolePlanner) isRequest(seq int64) bool {
	is := func(m *roleMessage) bool { return m != nil && m.seq() == seq }
	return is(p.log.original) || is(p.log.newest)
}

// skipped lists the seqs of messages that are new to the role and neither shown nor covered, in no order. What the open
// turn's first request has shown is not skipped where the turn's own messages have taken its place since.
func (p *rolePlanner) skipped(l layout) []int64 {
	return slices.DeleteFunc(p.newLeftOut(l), func(seq int64) bool { return seq <= p.log.shown })
}

// newLeftOut lists the seqs of messages that are new to the role, and that a layout neither shows nor covers. One stands
// for all those that were not counted.
func (p *rolePlanner) newLeftOut(l layout) (seqs []int64) {
	leave := func(seq int64) {
		if !l.covers(seq) && !p.isRequest(seq) {
			seqs = append(seqs, seq)
		}
	}
	for _, m := range p.log.messages[:l.first] {
		if m.isNew {
			leave(m.seq())
		}
	}
	for _, m := range p.log.above {
		if m.isNew {
			leave(m.seq)
		}
	}
	uncounted := max(p.role.Cursor, p.role.Since) + 1
	if l.covers(uncounted) {
		uncounted = l.standIn.Summary.Through + 1
	}
	if p.log.uncounted && uncounted < p.oldestCounted() {
		seqs = append(seqs, uncounted)
	}
	return seqs
}

// oldestCounted is the oldest seq that was read, if only to count it.
func (p *rolePlanner) oldestCounted() int64 {
	if n := len(p.log.above); n > 0 {
		return p.log.above[n-1].seq
	}
	return p.log.top
}

// left counts the messages before those that a layout shows, as far as nothing stands for them; -1 where they are too
// many to be counted.
func (p *rolePlanner) left(l layout) int {
	log := p.log
	before := log.previous
	count := 0
	add := func(seq int64) {
		original := log.original != nil && seq == log.original.seq()
		if p.onlyNew(l.standIn) && seq <= p.role.Cursor {
			return
		}
		if !original && !l.covers(seq) && (before == nil || seq >= before.Start) {
			count++
		}
	}
	for _, m := range log.messages[:l.first] {
		add(m.seq())
	}
	for _, m := range log.above {
		add(m.seq)
	}
	switch oldest := l.standIn != nil && l.standIn.Summary.From <= p.role.Since+1; {
	case before != nil && !(oldest && l.standIn.Summary.Through >= before.Start-1):
		return sumLeft(count, p.leftBefore(l))
	case before == nil && log.uncounted && !oldest:
		return -1
	}
	return count
}

// leftBefore is how many messages before the window before nothing stands for any more.
func (p *rolePlanner) leftBefore(l layout) int {
	before := p.log.previous
	e := p.log.standIn(before.Summary)
	if e == nil || e == l.standIn || e.PartType != continuo.PartCatchUp {
		return before.Left
	}
	if e.Summary.Messages == 0 {
		return -1
	}
	return sumLeft(before.Left, e.Summary.Messages)
}

// sumLeft adds two counts of which either may be unknown.
func sumLeft(x, y int) int {
	if x < 0 || y < 0 {
		return -1
	}
	return x + y
}
