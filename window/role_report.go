package window

import (
	"cmp"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// plan writes down what was decided.
func (r *roleBuild) plan() *continuo.Plan {
	r.window.Limit = r.openOver
	p := &continuo.Plan{View: r.view.Name, ViewHash: r.hash, At: r.in.At, Window: continuo.Window{Epoch: 1, Start: 1}}
	if r.text.Seq > 0 {
		p.Messages = append(p.Messages, r.text)
	}
	for _, piece := range r.open {
		p.Messages = append(p.Messages, piece.messages...)
	}
	if n := len(r.units); n > 0 && r.units[n-1].unfinished() {
		p.Cycle = r.text.Seq
	}
	p.Items = r.fold(r.items())
	p.Totals = totals(p)
	limits := r.limits()
	p.Limits = continuo.Size{Chars: limits.Chars, Tokens: limits.Tokens}
	p.Totals.RowsRead, p.Totals.PromptSize = r.rowsRead, r.in.Prompt
	p.Role = r.rolePlan()
	return p
}

// rolePlan says what the plan means for the role. What a summary that is shown stands for counts as shown.
func (r *roleBuild) rolePlan() *continuo.RolePlan {
	told := &continuo.RolePlan{
		Name: r.role.Name, Kind: string(r.role.Kind), Cursor: r.role.Cursor, Through: r.end, Waiting: r.waiting(r.arranged),
	}
	if r.ask != nil && r.later == 0 {
		told.Through = r.ask.Seq
	}
	for _, t := range r.talk {
		if t.isNew && (t.order == fresh && r.isShown(r.arranged, t) || t.order != fresh && r.covered(t.seq())) {
			told.News++
		}
	}
	switch {
	case r.arranged.fresh < len(r.fresh):
		told.Through = r.fresh[r.arranged.fresh].seq() - 1
	case r.held != nil:
		told.Through = r.held.seq() - 1
	}
	told.Through = max(told.Through, told.Cursor)
	return told
}

// items returns the verdicts on all entries that were read, by seq.
func (r *roleBuild) items() []continuo.PlanItem {
	items := map[int64]continuo.PlanItem{}
	put := func(e *continuo.Entry, verdict continuo.Verdict, reason string, after *continuo.Size) {
		before := sizeStored(e)
		items[e.Seq] = continuo.PlanItem{Seq: e.Seq, Role: e.Role, Verdict: verdict, Reason: reason, Before: &before, After: after}
	}
	for _, e := range r.excluded {
		put(e.entry, continuo.Excluded, e.reason, nil)
	}
	for _, t := range r.talk {
		verdict, reason := r.unshown(t.seq())
		if t.order == fresh || t == r.held {
			verdict, reason = continuo.Dropped, reasonNextTurn
		}
		for _, e := range t.unit.entries {
			put(e, verdict, reason, nil)
		}
	}
	for _, b := range r.arranged.blocks {
		if b.entry != nil {
			put(b.entry, verdictOf(b.cut), r.blockReason(b.entry), &b.size)
		}
	}
	r.walk(r.arranged, func(t *talk, text string) {
		if t == nil {
			return
		}
		size := r.sizeOf(t)
		if text != "" {
			size = r.sizeOfText(text)
		}
		size.Messages = 1
		for i, e := range t.unit.entries {
			if i == 0 {
				put(e, verdictOf(text != "" || t.short), r.reasonFor(t), &size)
				continue
			}
			put(e, continuo.Truncated, r.reasonFor(t), &continuo.Size{}) // its line stands in the message
		}
	})
	var list []continuo.PlanItem
	for _, item := range items {
		list = append(list, item)
	}
	list = append(list, r.turnItems()...)
	slices.SortFunc(list, func(x, y continuo.PlanItem) int { return cmp.Compare(x.Seq, y.Seq) })
	return list
}

func verdictOf(cut bool) continuo.Verdict {
	if cut {
		return continuo.Truncated
	}
	return continuo.Kept
}

// turnItems are the verdicts on the role's own turn.
func (r *roleBuild) turnItems() []continuo.PlanItem {
	var items []continuo.PlanItem
	shown := map[*unit]bool{}
	for _, p := range r.open {
		if p.unit != nil {
			shown[p.unit] = true
			items = append(items, r.shownItems(p)...)
		}
	}
	for _, u := range r.units {
		if shown[u] {
			continue
		}
		for _, e := range u.entries {
			before := sizeStored(e)
			items = append(items, continuo.PlanItem{Seq: e.Seq, Role: e.Role, Verdict: continuo.Dropped, Reason: r.dropReason(), Before: &before})
		}
	}
	return items
}

func (r *roleBuild) blockReason(e *continuo.Entry) string {
	switch e {
	case r.notes:
		return reasonNotes
	case r.summary:
		return reasonSummary
	}
	return reasonOriginal
}

// reasonFor says why a message is shown.
func (r *roleBuild) reasonFor(t *talk) string {
	switch {
	case t.order == pinned && !t.isNew, t.order == fresh && !r.isShown(r.arranged, t):
		return reasonLatestUser
	case t.isNew:
		return reasonNew
	}
	return reasonSeen
}

// unshown says what became of an entry that is not shown and not new.
func (r *roleBuild) unshown(seq int64) (continuo.Verdict, string) {
	over := "over_" + r.arranged.limit
	if r.arranged.limit == "" {
		over = "before_window"
	}
	switch {
	case seq <= r.role.Since:
		return continuo.Excluded, reasonBeforeReset
	case r.end < seq && seq <= r.later:
		return continuo.Dropped, reasonNextTurn
	case r.covered(seq):
		return continuo.Summarized, reasonSummary
	case r.kind == RoleMemory && seq <= r.noted() && seq >= r.notes.Summary.From:
		return continuo.Summarized, reasonNotes
	case r.kind == RoleDelta && seq <= r.role.Cursor, r.kind == RoleMemory && seq <= r.noted():
		return continuo.Excluded, reasonSeen
	}
	return continuo.Dropped, over
}

// fold fills the gaps between items with runs of what was not read, and joins neighbours that are not shown for the
// same reason.
func (r *roleBuild) fold(items []continuo.PlanItem) []continuo.PlanItem {
	folded := []continuo.PlanItem{}
	add := func(item continuo.PlanItem) {
		if n := len(folded); n > 0 && folded[n-1].Verdict == item.Verdict && folded[n-1].Reason == item.Reason && !isShownVerdict(item.Verdict) {
			last := &folded[n-1]
			*last = continuo.PlanItem{Seq: last.Seq, Through: max(item.Seq, item.Through), Verdict: item.Verdict, Reason: item.Reason}
			return
		}
		folded = append(folded, item)
	}
	next := int64(1)
	unread := func(through int64) {
		for next <= through {
			item := continuo.PlanItem{Seq: next}
			item.Verdict, item.Reason = r.unshown(next)
			next = r.runEnd(next, through) + 1
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
	unread(r.in.At)
	return folded
}

// runEnd is the last seq up to through for which what is said of seq holds for all that was not read.
func (r *roleBuild) runEnd(seq, through int64) int64 {
	ends := []int64{r.role.Since, r.end}
	switch r.kind {
	case RoleSummary:
		ends = append(ends, r.summary.Summary.From-1, r.summary.Summary.Through)
	case RoleMemory:
		ends = append(ends, r.notes.Summary.From-1, r.noted())
	case RoleDelta:
		ends = append(ends, r.role.Cursor)
	}
	for _, end := range ends {
		if seq <= end {
			through = min(through, end)
		}
	}
	return through
}

func isShownVerdict(v continuo.Verdict) bool {
	return v == continuo.Kept || v == continuo.Previewed || v == continuo.Truncated
}
