package view

import (
	"cmp"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// items gives the verdicts on all entries, by seq: on each one that was read, and on ranges of the others.
func (p *planner) items(a arrangement) []window.PlanItem {
	l := a.layout
	bySeq := map[int64]window.PlanItem{}
	put := func(e *continuo.Entry, verdict window.Verdict, reason string, after *continuo.Size) {
		bySeq[e.Seq] = window.NewItem(e, verdict, reason, after)
	}
	for _, e := range p.backlog.excluded {
		put(e.Entry, window.Excluded, e.Reason, nil)
	}
	for _, part := range p.around(l) {
		if part.entry != nil {
			put(part.entry, verdictOf(part.cut), p.partReason(part), &part.size)
		}
	}
	for i, m := range p.backlog.messages {
		p.messageItems(l, i, m, put)
		p.recallItems(l, i, put)
	}
	if p.backlog.held != nil {
		for _, e := range p.backlog.held.unit.Entries {
			put(e, window.Dropped, window.ReasonNextTurn, nil)
		}
	}
	var list []window.PlanItem
	for _, item := range bySeq {
		list = append(list, item)
	}
	list = append(list, p.turnItems(a)...)
	slices.SortFunc(list, func(x, y window.PlanItem) int { return cmp.Compare(x.Seq, y.Seq) })
	return window.MarkRecalled(p.fold(l, list), p.shownRecalls(l))
}

// messageItems gives the verdicts on a message and on the results of its calls.
func (p *planner) messageItems(l layout, i int, m *message, put func(*continuo.Entry, window.Verdict, string, *continuo.Size)) {
	if i < l.first {
		for _, e := range m.unit.Entries {
			if p.backlog.isRequest(e.Seq) {
				continue // it is shown in a block
			}
			verdict, reason := p.unshown(l, e.Seq)
			put(e, verdict, reason, nil)
		}
		return
	}
	size, cut := m.size, m.short
	if l.cut != "" && i == len(p.backlog.messages)-1 {
		size, cut = p.sizeOf(p.textOf(m, l.cut)), true
	}
	size.Messages = 1
	reason := window.ReasonSeen
	if m.isNew {
		reason = window.ReasonNew
	}
	for at, e := range m.unit.Entries {
		if at == 0 {
			put(e, verdictOf(cut), reason, &size)
			continue
		}
		put(e, window.Truncated, reason, &continuo.Size{}) // the message contains its line
	}
}

func verdictOf(cut bool) window.Verdict {
	if cut {
		return window.Truncated
	}
	return window.Kept
}

// turnItems are the verdicts on the role's own turn.
func (p *planner) turnItems(a arrangement) []window.PlanItem {
	var items []window.PlanItem
	turn := p.backlog.turn
	shown := map[*window.Unit]bool{}
	for _, group := range a.turn {
		u := group.unit
		if u == nil {
			continue
		}
		shown[u] = true
		kept := window.ReasonInWindow
		if u.Group && u == turn[len(turn)-1] {
			kept = window.ReasonOpenGroup
		}
		items = append(items, p.request.Items(u, group.level, kept, a.turnCut)...)
	}
	for _, u := range turn {
		if shown[u] {
			continue
		}
		for _, e := range u.Entries {
			items = append(items, window.NewItem(e, window.Dropped, window.DropReason(a.turnCut), nil))
		}
	}
	return items
}

// partReason is the reason of a verdict on an entry that is shown before or after the messages.
func (p *planner) partReason(part part) string {
	switch {
	case part.request && !part.after:
		return window.ReasonOriginal
	case part.request && part.entry.Seq > p.role.Cursor:
		return window.ReasonNew
	case part.request:
		return window.ReasonLatestUser
	}
	return summaryReason(part.entry)
}

// summaryReason is the reason of a verdict on entries that a summary covers.
func summaryReason(e *continuo.Entry) string {
	switch e.PartType {
	case continuo.PartNotes:
		return window.ReasonNotes
	case continuo.PartCatchUp:
		return window.ReasonCatchUp
	}
	return window.ReasonSummary
}

// unshown is the verdict and the reason for an entry before the first shown message.
func (p *planner) unshown(l layout, seq int64) (window.Verdict, string) {
	switch {
	case seq <= p.role.Since:
		return window.Excluded, window.ReasonBeforeReset
	case covers(l.summary, seq):
		return window.Summarized, summaryReason(l.summary)
	case seq > max(p.role.Cursor, p.backlog.shownThrough):
		return window.Dropped, window.ReasonNextTurn
	case p.role.onlyNew(l.summary):
		return window.Excluded, window.ReasonSeen
	}
	return window.Dropped, window.DropReason(l.window.Limit)
}

// fold fills the gaps between items with ranges of unread entries, and merges neighbours that are left out for the
// same reason.
func (p *planner) fold(l layout, items []window.PlanItem) []window.PlanItem {
	folded := []window.PlanItem{}
	add := func(item window.PlanItem) {
		if n := len(folded); n > 0 && folded[n-1].Verdict == item.Verdict && folded[n-1].Reason == item.Reason && !isShown(item.Verdict) {
			last := &folded[n-1]
			*last = window.PlanItem{Seq: last.Seq, Through: max(item.Seq, item.Through), Verdict: item.Verdict, Reason: item.Reason}
			return
		}
		folded = append(folded, item)
	}
	next := int64(1)
	unread := func(through int64) {
		for next <= through {
			item := window.PlanItem{Seq: next}
			item.Verdict, item.Reason = p.unshown(l, next)
			next = p.runEnd(l, next, through) + 1
			if next-1 > item.Seq {
				item.Through = next - 1
			}
			add(item)
		}
	}
	for _, item := range items {
		unread(item.Seq - 1)
		add(item)
		next = item.Seq + 1
	}
	unread(p.in.At)
	return folded
}

// runEnd is the last seq, up to through, to which the verdict on the unread entry seq applies.
func (p *planner) runEnd(l layout, seq, through int64) int64 {
	ends := []int64{p.role.Since, p.role.Cursor, p.backlog.shownThrough}
	if e := l.summary; e != nil {
		ends = append(ends, e.Summary.From-1, e.Summary.Through)
	}
	for _, end := range ends {
		if seq <= end {
			through = min(through, end)
		}
	}
	return through
}

func isShown(v window.Verdict) bool {
	return v == window.Kept || v == window.Previewed || v == window.Truncated || v == window.Recalled
}
