package window

import (
	"cmp"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// plan returns the decisions as a plan.
func (b *build) plan() *Plan {
	p := &Plan{
		View: b.view.Name, ViewHash: b.hash, At: b.in.At,
		Window: b.window, Moved: b.moved, Cycle: b.openCycle(),
	}
	pieces, _ := b.layout(b.window)
	v := b.show(p, pieces)
	p.Items = summarized(Fold(v.items, b.in.At, DropReason(b.window.Limit)), shownSummary(pieces))
	p.Items = recalled(p.Items, pieces)
	p.Totals = Totals(p)
	limits := b.Limits()
	p.Limits = continuo.Size{Messages: limits.Messages, Chars: limits.Chars, Tokens: limits.Tokens}
	p.Totals.RowsRead = b.rowsRead
	p.Totals.PromptSize, p.Profile = b.in.Prompt, b.profile.plan
	b.SetEstimate(p)
	if b.moved && b.view.Priced {
		p.Prices = b.in.Prices
	}
	return p
}

// verdicts are an item for every entry that was read, by seq.
type verdicts struct {
	items []PlanItem
	sizes itemSizes
}

// show writes the messages of a layout to a plan, and returns the verdicts.
func (b *build) show(p *Plan, pieces []piece) verdicts {
	entries, messages := len(b.excluded), len(pieces)
	for _, u := range b.units {
		entries += len(u.Entries)
	}
	for _, piece := range pieces {
		if piece.unit != nil {
			entries++ // a pin that is no unit of the scan
			messages += len(piece.unit.Entries) + len(piece.unit.missing) - 1
		}
	}
	v := verdicts{items: make([]PlanItem, 0, entries), sizes: itemSizes{make([]continuo.Size, 2*entries)}}
	if messages > 0 {
		p.Messages = make([]Message, 0, messages)
	}
	next := 0 // the scanned unit after those that have items
	for _, piece := range pieces {
		if piece.unit == nil {
			p.Messages = append(p.Messages, b.placeholder(piece))
			continue
		}
		for ; next < len(b.units) && b.units[next].First() < piece.unit.First(); next++ {
			b.drop(&v, b.units[next])
		}
		if next < len(b.units) && b.units[next] == piece.unit {
			next++
		}
		b.showUnit(p, &v, piece.unit)
	}
	for ; next < len(b.units); next++ {
		b.drop(&v, b.units[next])
	}
	for _, e := range b.excluded {
		v.items = append(v.items, v.sizes.item(e.Entry, Excluded, e.Reason, nil))
	}
	bySeq := func(x, y PlanItem) int { return cmp.Compare(x.Seq, y.Seq) }
	if !slices.IsSortedFunc(v.items, bySeq) {
		slices.SortFunc(v.items, bySeq)
	}
	return v
}

// placeholder is the message of a piece without a unit.
func (b *build) placeholder(p piece) Message {
	switch {
	case p.summary != nil:
		return b.summaryMessage(p.summary)
	case p.leadIn:
		return b.leadIn()
	}
	return b.marker()
}

// showUnit writes the messages and the verdicts of a unit.
func (b *build) showUnit(p *Plan, v *verdicts, u *Unit) {
	level, first := levelIn(b.window, u), len(p.Messages)
	var few [16]Verdict
	var found []Verdict
	p.Messages, found = u.appendTo(b.shaper, level, p.Messages, few[:0])
	kept, limit := b.shownReason(u), cmp.Or(b.window.CutLimit, b.window.Limit)
	for i := range u.Entries {
		v.items = append(v.items, b.item(u, i, level, found[i], &p.Messages[first+i], kept, limit, &v.sizes))
	}
}

// drop writes the verdicts of a unit that was read and is not shown.
func (b *build) drop(v *verdicts, u *Unit) {
	for _, entry := range u.Entries {
		v.items = append(v.items, v.sizes.item(entry, Dropped, DropReason(b.window.Limit), nil))
	}
}

// shownReason returns the reason for which a unit is shown.
func (b *build) shownReason(u *Unit) string {
	switch {
	case u == b.newestUser:
		return ReasonLatestUser
	case u.Group && u == b.units[len(b.units)-1]:
		return ReasonOpenGroup
	case u.First() >= b.window.Start:
		return ReasonInWindow
	case u == b.opener:
		return ReasonOpener
	default:
		return ReasonPinned
	}
}

// NewItem is a verdict on an entry. After is the size of what is shown of it; nil for nothing.
func NewItem(e *continuo.Entry, verdict Verdict, reason string, after *continuo.Size) PlanItem {
	before := continuo.Size{Messages: 1, Chars: e.Chars, Tokens: e.Tokens}
	return PlanItem{Seq: e.Seq, Role: e.Role, Verdict: verdict, Reason: reason, Before: &before, After: after}
}

// itemSizes are the sizes that items point to, allocated many at once.
type itemSizes struct{ unused []continuo.Size }

// add returns a pointer to a copy of a size.
func (s *itemSizes) add(size continuo.Size) *continuo.Size {
	if len(s.unused) == 0 {
		s.unused = make([]continuo.Size, 2)
	}
	added := &s.unused[0]
	*added, s.unused = size, s.unused[1:]
	return added
}

// item is [NewItem], with a copy of after.
func (s *itemSizes) item(e *continuo.Entry, verdict Verdict, reason string, after *continuo.Size) PlanItem {
	item := PlanItem{Seq: e.Seq, Role: e.Role, Verdict: verdict, Reason: reason}
	item.Before = s.add(continuo.Size{Messages: 1, Chars: e.Chars, Tokens: e.Tokens})
	if after != nil {
		item.After = s.add(*after)
	}
	return item
}

// Fold fills the gaps between items, up to a seq, with ranges that were dropped unread, for a reason, and
// joins neighbours that have the same verdict and the same reason for not being shown.
func Fold(items []PlanItem, at int64, unread string) []PlanItem {
	f := folder{folded: make([]PlanItem, 0, len(items)+1)}
	next := int64(1)
	for i := range items {
		f.gap(next, items[i].Seq-1, unread)
		f.add(&items[i])
		next = items[i].Seq + 1
	}
	f.gap(next, at, unread)
	return f.folded
}

// folder joins items.
type folder struct {
	folded []PlanItem
	owned  bool // the last item's sizes are the folder's own
}

func (f *folder) add(item *PlanItem) {
	n := len(f.folded)
	if n == 0 || !joins(&f.folded[n-1], item) {
		f.folded, f.owned = append(f.folded, *item), false
		return
	}
	last := &f.folded[n-1]
	if !f.owned {
		last.Before, last.After = clone(last.Before), clone(last.After)
		last.Role, f.owned = "", true
	}
	last.Through = max(item.Through, item.Seq)
	last.Before, last.After = sum(last.Before, item.Before), sum(last.After, item.After)
}

// gap adds a range of entries that were not read, if it is not empty.
func (f *folder) gap(from, to int64, reason string) {
	if from > to {
		return
	}
	item := PlanItem{Seq: from, Through: to, Verdict: Dropped, Reason: reason}
	if from == to {
		item.Through = 0
	}
	f.add(&item)
}

func clone(size *continuo.Size) *continuo.Size {
	if size == nil {
		return nil
	}
	own := *size
	return &own
}

// sum adds to a size; nil if one of them is unknown because its entries were not read.
func sum(total, more *continuo.Size) *continuo.Size {
	if total == nil || more == nil {
		return nil
	}
	*total = total.Add(*more)
	return total
}

func joins(before, item *PlanItem) bool {
	unshown := item.Verdict == Dropped || item.Verdict == Excluded
	return unshown && before.Verdict == item.Verdict && before.Reason == item.Reason &&
		max(before.Through, before.Seq)+1 == item.Seq
}

// Totals sums a plan's items and messages up.
func Totals(p *Plan) PlanTotals {
	totals := PlanTotals{Entries: p.At, SharedBytes: -1}
	for i := range p.Items {
		item := &p.Items[i]
		count := int64(1)
		if item.Through > 0 {
			count = item.Through - item.Seq + 1
		}
		switch item.Verdict {
		case Dropped:
			totals.Dropped += count
			continue
		case Excluded:
			totals.Excluded += count
			continue
		case Summarized:
			totals.Summarized += count
			continue
		case Recalled:
			totals.Recalled += count
			continue
		case Previewed:
			totals.Previewed += count
		case Truncated:
			totals.Truncated += count
		}
		totals.Kept += count
	}
	for i := range p.Messages {
		size := &p.Messages[i].Size
		totals.Messages += size.Messages
		totals.Chars += size.Chars
		totals.Tokens += size.Tokens
	}
	return totals
}
