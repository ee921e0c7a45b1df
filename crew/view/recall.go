package view

import (
	"cmp"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// recallBlock is a block of recalled entries as the role is shown it, after the message that precedes it in the log.
func (s *sizer) recallBlock(e *continuo.Entry) part {
	made := part{entry: e, text: between(recalledBegin, recalledEnd, escape)(textIn(e))}
	made.size = s.sizeOf(made.text)
	return made
}

// recallSize is the size of the blocks after a message.
func (m *message) recallSize() (size continuo.Size) {
	for i := range m.recalls {
		size = size.Add(m.recalls[i].size)
	}
	return size
}

// recallsAfter are the blocks that a layout shows after a message.
func (p *planner) recallsAfter(l layout, i int) []part {
	if i < l.first || l.bare && i == len(p.backlog.messages)-1 {
		return nil
	}
	return p.backlog.messages[i].recalls
}

// recallItems gives the verdicts on the blocks after a message.
func (p *planner) recallItems(l layout, i int, put func(*continuo.Entry, window.Verdict, string, *continuo.Size)) {
	m := p.backlog.messages[i]
	if len(p.recallsAfter(l, i)) > 0 {
		for _, block := range m.recalls {
			size := block.size
			size.Messages = 1
			put(block.entry, window.Recalled, window.ReasonRecall, &size)
		}
		return
	}
	for _, block := range m.recalls {
		put(block.entry, window.Excluded, window.ReasonUIOnly, nil)
	}
}

// shownRecalls are the entries of the blocks that a layout shows.
func (p *planner) shownRecalls(l layout) (blocks []*continuo.Entry) {
	for i := l.first; i < len(p.backlog.messages); i++ {
		for _, block := range p.recallsAfter(l, i) {
			blocks = append(blocks, block.entry)
		}
	}
	return blocks
}

// shownEntries are the entries that the messages of a layout are made of, in order.
func (p *planner) shownEntries(l layout) []*continuo.Entry {
	entries := p.shownRecalls(l)
	for _, part := range p.around(l) {
		if part.entry != nil {
			entries = append(entries, part.entry)
		}
	}
	for _, m := range p.backlog.messages[l.first:] {
		entries = append(entries, m.unit.Entries...)
	}
	slices.SortFunc(entries, func(a, b *continuo.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return entries
}
