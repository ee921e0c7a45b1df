package window

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// recalled sets the verdict of blocks of recalled entries, and of the entries that only they show.
func recalled(items []PlanItem, pieces []piece) []PlanItem {
	shown := map[int64]*RecallMatch{}
	blocks := map[int64]bool{}
	for _, p := range pieces {
		if p.unit == nil || !p.unit.Entries[0].HoldsRecall() {
			continue
		}
		block := p.unit.Entries[0]
		blocks[block.Seq] = true
		for _, item := range block.Recall.Items {
			if item.ConversationID != "" {
				continue // of another conversation
			}
			shown[item.Seq] = &RecallMatch{By: block.Seq, Score: item.Score, Words: item.Words, Passage: item.Passage}
		}
	}
	if len(blocks) == 0 {
		return items
	}
	var split []PlanItem
	for _, item := range items {
		if blocks[item.Seq] && item.Verdict == Kept {
			item.Verdict, item.Reason = Recalled, ReasonRecall
		}
		if item.Verdict == Dropped || item.Verdict == Summarized {
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
	for i := range p.Messages {
		if entry := p.Messages[i].Entry; entry != nil && entry.HoldsRecall() {
			blocks = append(blocks, entry)
		}
	}
	return blocks
}
