package window

import (
	"cmp"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// recalled sets the verdict of blocks of recalled entries, and of the entries that only they show.
func recalled(items []PlanItem, pieces []piece) []PlanItem {
	var blocks []*continuo.Entry
	for _, p := range pieces {
		if p.unit != nil && p.unit.Entries[0].HoldsRecall() {
			blocks = append(blocks, p.unit.Entries[0])
		}
	}
	for i := range items {
		if item := &items[i]; item.Verdict == Kept && slices.ContainsFunc(blocks, func(block *continuo.Entry) bool { return block.Seq == item.Seq }) {
			item.Verdict, item.Reason = Recalled, ReasonRecall
		}
	}
	return MarkRecalled(items, blocks)
}

// MarkRecalled sets the verdict of entries that a plan shows in nothing but blocks of recalled entries.
func MarkRecalled(items []PlanItem, blocks []*continuo.Entry) []PlanItem {
	shown := map[int64]*RecallMatch{}
	for _, block := range blocks {
		for _, item := range block.Recall.Items {
			if item.ConversationID == "" { // otherwise it is of another conversation
				shown[item.Seq] = &RecallMatch{By: block.Seq, Score: item.Score, Words: item.Words, Passage: item.Passage}
			}
		}
	}
	if len(shown) == 0 {
		return items
	}
	var split []PlanItem
	for _, item := range items {
		if item.Verdict == Dropped || item.Verdict == Summarized || item.Verdict == Excluded && item.Reason == ReasonSeen {
			split = appendRecalled(split, item, shown)
			continue
		}
		split = append(split, item)
	}
	return split
}

// appendRecalled adds an item that is not shown, or a range of them, without those that a block shows.
func appendRecalled(items []PlanItem, item PlanItem, shown map[int64]*RecallMatch) []PlanItem {
	last := max(item.Seq, item.Through)
	var seqs []int64
	for seq := range shown {
		if seq >= item.Seq && seq <= last {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	from := item.Seq
	for _, seq := range seqs {
		items = appendPart(items, item, from, seq-1)
		items = append(items, PlanItem{Seq: seq, Verdict: Recalled, Reason: ReasonRecall, Recall: shown[seq]})
		from = seq + 1
	}
	return appendPart(items, item, from, last)
}

// appendPart adds a part of an item, with its sizes only where it is the whole.
func appendPart(items []PlanItem, item PlanItem, from, to int64) []PlanItem {
	if from == item.Seq && to == max(item.Seq, item.Through) {
		return append(items, item)
	}
	return appendRun(items, item, from, to)
}

// Blocks returns the blocks of recalled entries that a plan shows.
func (p *Plan) Blocks() []*continuo.Entry {
	var blocks []*continuo.Entry
	for _, entry := range p.Shown() {
		if entry.HoldsRecall() {
			blocks = append(blocks, entry)
		}
	}
	return blocks
}

// Shown returns the entries that a plan shows in any form, by their seqs.
func (p *Plan) Shown() []*continuo.Entry {
	var shown []*continuo.Entry
	if p.Role != nil {
		shown = slices.Clone(p.Role.Entries)
	}
	for i := range p.Messages {
		if entry := p.Messages[i].Entry; entry != nil {
			shown = append(shown, entry)
		}
	}
	slices.SortStableFunc(shown, func(a, b *continuo.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	return slices.CompactFunc(shown, func(a, b *continuo.Entry) bool { return a.Seq == b.Seq })
}
