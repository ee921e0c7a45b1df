package view

import (
	"slices"
	"sort"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// layout is the selection of messages for a role: those from first on, and what replaces the earlier ones.
type layout struct {
	window  continuo.Window
	moved   bool
	first   int             // index of the first message
	summary *continuo.Entry // summary, notes or catch-up; nil for none
	cut     string          // the shown part of the newest message; "" where it is whole
	tight   bool            // blocks get the least room
	bare    bool            // the newest message is shown without the recalled entries after it
}

// planner decides what a role is shown of a backlog. It reads nothing and leaves the backlog unchanged.
type planner struct {
	*sizer
	backlog *backlog

	blocks map[blockKey]part // already made
	sums   []continuo.Size   // total of the messages from each index on; computed on first use
}

func newPlanner(view View, in window.Input) *planner {
	return &planner{sizer: newSizer(view, in), blocks: map[blockKey]part{}}
}

// layout decides where the window begins: at its previous beginning, if that fits, else where a move puts it. It
// returns false where not even the minimum fits.
func (p *planner) layout(limits window.Limits) (layout, bool) {
	if l, ok := p.unmoved(limits); ok {
		return l, true
	}
	return p.moved(limits)
}

// unmoved is the layout with the previous window and the messages since. It returns false where the window must move.
func (p *planner) unmoved(limits window.Limits) (layout, bool) {
	b := p.backlog
	w := b.previous
	if w == nil || b.oldest > w.Start {
		return layout{}, false
	}
	l := layout{window: *w, first: b.indexFrom(w.Start), summary: b.summary(w.Summary)}
	shown := len(b.messages) - l.first
	newer := b.usualSummary(&p.role)
	switch {
	case w.Summary != 0 && l.summary == nil: // redacted since
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

// moved places the window so that it leaves room for many turns. New messages are shown as long as they fit into the
// limits; seen ones up to the low-water mark, or up to the limits where the room above the mark would not hold
// another turn like this one, or where there was no previous window.
func (p *planner) moved(limits window.Limits) (layout, bool) {
	b := p.backlog
	target, maxMessages := limits, p.maxMessages
	if b.previous != nil && !p.outgrows(limits) {
		target, maxMessages = p.lowered(limits), p.loweredMessages()
	}
	l := p.filled(b.usualSummary(&p.role), limits, target, maxMessages)
	if catchUp := b.catchUp(&p.role); l.summary == nil && catchUp != nil && len(p.newLeftOut(l)) > 0 {
		l = p.filled(catchUp, limits, limits, p.maxMessages)
	}
	if n := len(b.messages); l.first == n && p.oldestShown(l.summary) < n || !p.fits(l, limits, p.maxMessages) {
		var ok bool
		if l, ok = p.shrunk(l, limits); !ok {
			return l, false
		}
	}
	return p.withWindow(l, limits), true
}

// filled is the layout with as many messages as the target holds, and with all new ones if the limits hold them.
func (p *planner) filled(summary *continuo.Entry, limits, target window.Limits, targetMessages int) layout {
	n := len(p.backlog.messages)
	l := layout{summary: summary}
	oldest := p.oldestShown(summary)
	reach := func(limits window.Limits, maxMessages int) int {
		fits := func(first int) bool {
			l.first = first
			return p.fits(l, limits, maxMessages)
		}
		first := oldest + sort.Search(n-oldest, func(i int) bool { return fits(oldest + i) })
		for first < n && !fits(first) { // a block may replace a removed message
			first++
		}
		return first
	}
	first := reach(target, targetMessages)
	if firstNew := p.backlog.firstNew(); first > firstNew {
		first = max(reach(limits, p.maxMessages), firstNew)
	}
	l.first = first
	return l
}

// shrunk shows the newest message, cut unless it is the user's newest, and the minimum of everything else.
func (p *planner) shrunk(l layout, limits window.Limits) (layout, bool) {
	messages := p.backlog.messages
	n := len(messages)
	l.first, l.bare = max(n-1, 0), true
	for _, l.tight = range []bool{false, true} {
		if l.cut = ""; p.fits(l, limits, 0) {
			return l, true
		}
		if n == 0 || messages[n-1] == p.backlog.newest {
			continue
		}
		body, ok := cutTo(messages[n-1].raw, limits, func(body string) bool {
			l.cut = body
			return p.fits(l, limits, 0)
		})
		if l.cut = body; ok {
			return l, true
		}
	}
	return l, false
}

// withWindow adds to a layout the window that is recorded for it after a move.
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

// bindingLimit names the limit that requires leaving messages out; "" for none.
func (p *planner) bindingLimit(limits window.Limits) string {
	if p.maxMessages > 0 && len(p.backlog.messages) > p.maxMessages {
		return window.LimitMessages
	}
	return limits.Exceeded(p.sizeOfLayout(layout{}))
}

// oldestShown is the index of the first message that the view shows if it fits.
func (p *planner) oldestShown(summary *continuo.Entry) int {
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

// outgrows reports whether the new messages of one turn exceed the room that a move to the low-water mark would
// leave.
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

// fits reports whether a layout is within limits and a number of messages, 0 for any.
func (p *planner) fits(l layout, limits window.Limits, maxMessages int) bool {
	return (maxMessages == 0 || len(p.backlog.messages)-l.first <= maxMessages) && limits.Exceeded(p.sizeOfLayout(l)) == ""
}

// sizeOfLayout is the sum of the sizes of a layout's parts.
func (p *planner) sizeOfLayout(l layout) continuo.Size {
	size := p.sumFrom(l.first)
	if n := len(p.backlog.messages); l.cut != "" && n > 0 {
		last := p.backlog.messages[n-1]
		size = size.Less(last.size).Add(p.sizeOf(p.textOf(last, l.cut)))
	}
	if n := len(p.backlog.messages); l.bare && n > 0 {
		size = size.Less(p.backlog.messages[n-1].recallSize())
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

// sumFrom is the size of the messages from an index on.
func (p *planner) sumFrom(first int) continuo.Size {
	if p.sums == nil {
		n := len(p.backlog.messages)
		p.sums = make([]continuo.Size, n+1)
		for i := n - 1; i >= 0; i-- {
			m := p.backlog.messages[i]
			p.sums[i] = p.sums[i+1].Add(m.size).Add(m.recallSize())
		}
	}
	return p.sums[first]
}

// shows reports whether a message is among those that a layout shows in order.
func (p *planner) shows(l layout, m *message) bool {
	b := p.backlog
	return l.first < len(b.messages) && m.seq() >= b.messages[l.first].seq() && m.seq() <= b.end
}

// skipped lists, in no order, the seqs of messages that are new to the role and neither shown nor covered. Messages
// that the open turn's first request showed do not count, even if the turn's own messages have displaced them since.
func (p *planner) skipped(l layout) []int64 {
	return slices.DeleteFunc(p.newLeftOut(l), func(seq int64) bool { return seq <= p.backlog.shownThrough })
}

// newLeftOut lists the seqs of messages that are new to the role and that a layout neither shows nor covers. One seq
// represents all those that were not counted.
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

// left counts the messages before those that a layout shows, without those that a summary covers; -1 where they are
// too many to be counted.
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

// leftBefore counts the messages before the previous window that no summary covers any more.
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

// addCounts adds two counts, either of which may be -1 for unknown.
func addCounts(x, y int) int {
	if x < 0 || y < 0 {
		return -1
	}
	return x + y
}
