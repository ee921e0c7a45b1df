package view

import (
	"slices"
	"sort"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// layout says what a role is shown: the messages from first on, and what stands in the place of those before.
type layout struct {
	window  continuo.Window
	moved   bool
	first   int             // index of the first message
	summary *continuo.Entry // summary, notes or catch-up; nil for none
	cut     string          // what is shown of the newest message; "" where it is whole
	tight   bool            // blocks have the least room
}

// planner decides what a role is shown of a backlog. It reads nothing, and nothing that it decides changes it.
type planner struct {
	*sizer
	backlog *backlog

	blocks map[blockKey]part // made before
	sums   []continuo.Size   // of the messages from each on; made when first asked for
}

func newPlanner(view View, in window.Input) *planner {
	return &planner{sizer: newSizer(view, in), blocks: map[blockKey]part{}}
}

// layout decides where the window begins: where it did, if that fits, else where a move puts it. It reports false where
// not even the least fits.
func (p *planner) layout(limits window.Limits) (layout, bool) {
	if l, ok := p.kept(limits); ok {
		return l, true
	}
	return p.moved(limits)
}

// kept is the layout of the window before, with what was said since. It reports false where the window has to move.
func (p *planner) kept(limits window.Limits) (layout, bool) {
	b := p.backlog
	w := b.previous
	if w == nil || b.oldest > w.Start {
		return layout{}, false
	}
	l := layout{window: *w, first: b.indexFrom(w.Start), summary: b.summary(w.Summary)}
	shown := len(b.messages) - l.first
	newer := b.usualSummary(&p.role)
	switch {
	case w.Summary != 0 && l.summary == nil: // it was redacted since
		return l, false
	case p.role.Kind == Memory && newer != l.summary:
		return l, false
	case p.role.Kind == Summary && newer != l.summary && shown > p.role.Newest+p.role.growth():
		return l, false
	case len(p.skipped(l)) > 0:
		return l, false
	}
	return l, p.fits(l, limits, p.maxMessages)
}

// moved puts the window where it leaves room for many turns. What is new is shown as long as it fits into the limits; of
// what was seen before as much as the low-water mark allows, or the limits where the room above the mark would not hold
// another turn like this one, or where there was no window before.
func (p *planner) moved(limits window.Limits) (layout, bool) {
	b := p.backlog
	target, most := limits, p.maxMessages
	if b.previous != nil && !p.outgrows(limits) {
		target, most = p.lowered(limits), p.loweredMessages()
	}
	l := p.filled(b.usualSummary(&p.role), limits, target, most)
	if catchUp := b.catchUp(&p.role); l.summary == nil && catchUp != nil && len(p.newLeftOut(l)) > 0 {
		l = p.filled(catchUp, limits, limits, p.maxMessages)
	}
	if n := len(b.messages); l.first == n && p.oldestWanted(l.summary) < n || !p.fits(l, limits, p.maxMessages) {
		var ok bool
		if l, ok = p.shrunk(l, limits); !ok {
			return l, false
		}
	}
	return p.withWindow(l, limits), true
}

// filled is the layout with as many messages as the target holds, and with all that are new if the limits hold them.
func (p *planner) filled(summary *continuo.Entry, limits, target window.Limits, targetMost int) layout {
	n := len(p.backlog.messages)
	l := layout{summary: summary}
	wanted := p.oldestWanted(summary)
	reach := func(limits window.Limits, most int) int {
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
	if firstNew := p.backlog.firstNew(); first > firstNew {
		first = max(reach(limits, p.maxMessages), firstNew)
	}
	l.first = first
	return l
}

// shrunk shows the newest message, cut where it is not the newest of the user, and the least of everything else.
func (p *planner) shrunk(l layout, limits window.Limits) (layout, bool) {
	messages := p.backlog.messages
	n := len(messages)
	l.first = max(n-1, 0)
	for _, l.tight = range []bool{false, true} {
		if l.cut = ""; p.fits(l, limits, 0) {
			return l, true
		}
		if n == 0 || messages[n-1] == p.backlog.newest {
			continue
		}
		body, ok := cutTo(messages[n-1].said, limits, func(body string) bool {
			l.cut = body
			return p.fits(l, limits, 0)
		})
		if l.cut = body; ok {
			return l, true
		}
	}
	return l, false
}

// withWindow is a layout with the window that is recorded of it, where a move has put it.
func (p *planner) withWindow(l layout, limits window.Limits) layout {
	b := p.backlog
	l.window = continuo.Window{Epoch: 1, Start: b.end + 1, Left: p.left(l)}
	leftOut := l.first > 0 || b.oldest > p.role.Since+1
	switch {
	case !leftOut:
		l.window.Start = p.role.Since + 1
	case l.first < len(b.messages):
		l.window.Start = b.messages[l.first].seq()
	}
	if l.summary != nil {
		l.window.Summary = l.summary.Seq
	}
	if leftOut {
		l.window.Limit = p.bindingLimit(limits)
	}
	if l.moved = p.role.hasEpochs() && leftOut; b.previous != nil {
		l.window.Epoch, l.moved = b.previous.Epoch+1, true
	}
	return l
}

// bindingLimit names the limit for which messages are left out; "" where it is none.
func (p *planner) bindingLimit(limits window.Limits) string {
	if p.maxMessages > 0 && len(p.backlog.messages) > p.maxMessages {
		return window.LimitMessages
	}
	return limits.Exceeded(p.sizeOfLayout(layout{}))
}

// oldestWanted is the index of the first message that the view shows if it fits.
func (p *planner) oldestWanted(summary *continuo.Entry) int {
	b := p.backlog
	n := len(b.messages)
	switch kind := p.role.Kind; {
	case p.role.Whole || kind == Full:
		return 0
	case p.role.onlyNew(summary):
		return b.indexFrom(p.role.Cursor + 1)
	case kind == Window && p.role.Newest == 0:
		return b.firstNew()
	case kind == Memory && summary != nil:
		return min(b.firstNew(), b.indexFrom(summary.Summary.Through+1))
	case kind == Summary && summary != nil:
		return min(b.firstNew(), b.indexFrom(summary.Summary.Through+1), max(n-p.role.Newest, 0))
	}
	return 0
}

// outgrows reports whether what is new in one turn is more than a move to the low-water mark would leave room for.
func (p *planner) outgrows(limits window.Limits) bool {
	var size continuo.Size
	count := 1 // its own answer
	for _, m := range p.backlog.messages {
		if m.isNew {
			size = size.Add(m.size)
			count++
		}
	}
	low := p.lowered(limits)
	over := func(limit, low, size int) bool { return limit > 0 && size > limit-low }
	return p.maxMessages > 0 && count > p.maxMessages-p.loweredMessages() ||
		over(limits.Chars, low.Chars, size.Chars) || over(limits.Tokens, low.Tokens, size.Tokens)
}

// fits reports whether a layout keeps to limits and to a number of messages, 0 for any.
func (p *planner) fits(l layout, limits window.Limits, most int) bool {
	return (most == 0 || len(p.backlog.messages)-l.first <= most) && limits.Exceeded(p.sizeOfLayout(l)) == ""
}

// sizeOfLayout measures a layout by its parts.
func (p *planner) sizeOfLayout(l layout) continuo.Size {
	size := p.sumFrom(l.first)
	if n := len(p.backlog.messages); l.cut != "" && n > 0 {
		last := p.backlog.messages[n-1]
		size = size.Less(last.size).Add(p.sizeOf(p.textOf(last, l.cut)))
	}
	for _, part := range p.around(l) {
		size = size.Add(part.size)
	}
	if !p.role.Messages && size.Chars > 0 {
		size = size.Add(continuo.Size{Chars: -len(separator), Tokens: window.MessageOverhead})
		size.Messages = 1
	}
	return size
}

// sumFrom is the size of the messages from one on.
func (p *planner) sumFrom(first int) continuo.Size {
	if p.sums == nil {
		n := len(p.backlog.messages)
		p.sums = make([]continuo.Size, n+1)
		for i := n - 1; i >= 0; i-- {
			p.sums[i] = p.sums[i+1].Add(p.backlog.messages[i].size)
		}
	}
	return p.sums[first]
}

// shows reports whether a layout has a message among those that it shows in their order.
func (p *planner) shows(l layout, m *message) bool {
	b := p.backlog
	return l.first < len(b.messages) && m.seq() >= b.messages[l.first].seq() && m.seq() <= b.end
}

// skipped lists the seqs of messages that are new to the role and neither shown nor covered, in no order. What the open
// turn's first request has shown is not skipped where the turn's own messages have taken its place since.
func (p *planner) skipped(l layout) []int64 {
	return slices.DeleteFunc(p.newLeftOut(l), func(seq int64) bool { return seq <= p.backlog.shownThrough })
}

// newLeftOut lists the seqs of messages that are new to the role, and that a layout neither shows nor covers. One stands
// for all those that were not counted.
func (p *planner) newLeftOut(l layout) (seqs []int64) {
	b := p.backlog
	leave := func(seq int64) {
		if !covers(l.summary, seq) && !b.isRequest(seq) {
			seqs = append(seqs, seq)
		}
	}
	for _, m := range b.messages[:l.first] {
		if m.isNew {
			leave(m.seq())
		}
	}
	for _, m := range b.older {
		if m.isNew {
			leave(m.seq)
		}
	}
	uncounted := max(p.role.Cursor, p.role.Since) + 1
	if covers(l.summary, uncounted) {
		uncounted = l.summary.Summary.Through + 1
	}
	if b.moreOlder && uncounted < b.oldestCounted() {
		seqs = append(seqs, uncounted)
	}
	return seqs
}

// left counts the messages before those that a layout shows, as far as nothing stands for them; -1 where they are too
// many to be counted.
func (p *planner) left(l layout) int {
	b := p.backlog
	before := b.previous
	count := 0
	add := func(seq int64) {
		original := b.original != nil && seq == b.original.seq()
		if p.role.onlyNew(l.summary) && seq <= p.role.Cursor {
			return
		}
		if !original && !covers(l.summary, seq) && (before == nil || seq >= before.Start) {
			count++
		}
	}
	for _, m := range b.messages[:l.first] {
		add(m.seq())
	}
	for _, m := range b.older {
		add(m.seq)
	}
	switch oldest := l.summary != nil && l.summary.Summary.From <= p.role.Since+1; {
	case before != nil && !(oldest && l.summary.Summary.Through >= before.Start-1):
		return addCounts(count, p.leftBefore(l))
	case before == nil && b.moreOlder && !oldest:
		return -1
	}
	return count
}

// leftBefore is how many messages before the window before nothing stands for any more.
func (p *planner) leftBefore(l layout) int {
	before := p.backlog.previous
	e := p.backlog.summary(before.Summary)
	if e == nil || e == l.summary || e.PartType != continuo.PartCatchUp {
		return before.Left
	}
	if e.Summary.Messages == 0 {
		return -1
	}
	return addCounts(before.Left, e.Summary.Messages)
}

// addCounts adds two counts of which either may be unknown, which is -1.
func addCounts(x, y int) int {
	if x < 0 || y < 0 {
		return -1
	}
	return x + y
}
