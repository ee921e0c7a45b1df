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
	verdicts := b.verdicts(pieces)
	for _, piece := range pieces {
		p.Messages = append(p.Messages, piece.messages...)
	}
	p.Items = summarized(Fold(verdicts, b.in.At, DropReason(b.window.Limit)), shownSummary(pieces))
	p.Totals = Totals(p)
	limits := b.Limits()
	p.Limits = continuo.Size{Messages: limits.Messages, Chars: limits.Chars, Tokens: limits.Tokens}
	p.Totals.RowsRead = b.rowsRead
	p.Totals.PromptSize = b.in.Prompt
	return p
}

// verdicts returns an item for every entry that was read, by seq.
func (b *build) verdicts(pieces []piece) []PlanItem {
	var items []PlanItem
	shown := map[*Unit]bool{}
	for _, piece := range pieces {
		if piece.unit != nil {
			shown[piece.unit] = true
			items = append(items, b.shownItems(piece)...)
		}
	}
	for _, u := range b.units {
		if shown[u] {
			continue
		}
		for _, entry := range u.Entries {
			items = append(items, NewItem(entry, Dropped, DropReason(b.window.Limit), nil))
		}
	}
	for _, e := range b.excluded {
		items = append(items, NewItem(e.Entry, Excluded, e.Reason, nil))
	}
	slices.SortFunc(items, func(x, y PlanItem) int { return cmp.Compare(x.Seq, y.Seq) })
	return items
}

func (b *build) shownItems(p piece) []PlanItem {
	return b.Items(p.unit, p.level, b.shownReason(p), cmp.Or(b.window.CutLimit, b.window.Limit))
}

// shownReason returns the reason for which a unit is shown.
func (b *build) shownReason(p piece) string {
	switch {
	case p.unit == b.newestUser:
		return ReasonLatestUser
	case p.unit.Group && p.unit == b.units[len(b.units)-1]:
		return ReasonOpenGroup
	case p.unit.First() >= b.window.Start:
		return ReasonInWindow
	case p.unit == b.opener:
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

// Fold fills the gaps between items, up to a seq, with ranges that were dropped unread, for a reason, and
// joins neighbours that have the same verdict and the same reason for not being shown.
func Fold(items []PlanItem, at int64, unread string) []PlanItem {
	folded := []PlanItem{}
	add := func(item PlanItem) {
		if n := len(folded); n > 0 && joins(folded[n-1], item) {
			last := &folded[n-1]
			*last = PlanItem{
				Seq: last.Seq, Through: max(item.Through, item.Seq), Verdict: item.Verdict, Reason: item.Reason,
				Before: sum(last.Before, item.Before), After: sum(last.After, item.After),
			}
			return
		}
		folded = append(folded, item)
	}
	gap := func(from, to int64) {
		item := PlanItem{Seq: from, Through: to, Verdict: Dropped, Reason: unread}
		if from == to {
			item.Through = 0
		}
		if from <= to {
			add(item)
		}
	}
	next := int64(1)
	for _, item := range items {
		gap(next, item.Seq-1)
		add(item)
		next = item.Seq + 1
	}
	gap(next, at)
	return folded
}

// sum adds sizes; nil if one of them is unknown because its entries were not read.
func sum(a, b *continuo.Size) *continuo.Size {
	if a == nil || b == nil {
		return nil
	}
	total := a.Add(*b)
	return &total
}

func joins(before, item PlanItem) bool {
	unshown := item.Verdict == Dropped || item.Verdict == Excluded
	return unshown && before.Verdict == item.Verdict && before.Reason == item.Reason &&
		max(before.Through, before.Seq)+1 == item.Seq
}

// Totals sums a plan's items and messages up.
func Totals(p *Plan) PlanTotals {
	totals := PlanTotals{Entries: p.At, SharedBytes: -1}
	for _, item := range p.Items {
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
		case Previewed:
			totals.Previewed += count
		case Truncated:
			totals.Truncated += count
		}
		totals.Kept += count
	}
	for _, message := range p.Messages {
		totals.Messages += message.Size.Messages
		totals.Chars += message.Size.Chars
		totals.Tokens += message.Size.Tokens
	}
	return totals
}
