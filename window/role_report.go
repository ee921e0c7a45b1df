package window

import (
	"cmp"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// The reasons of verdicts in views of roles.
const (
	reasonNew         = "new"
	reasonSeen        = "seen"
	reasonOriginal    = "original_request"
	reasonLatestUser  = "latest_user"
	reasonOwnWords    = "own_words"
	reasonPlaceholder = "placeholder"
	reasonFailed      = "failed_answer"
	reasonBeforeReset = "before_reset"
	reasonAfterAsk    = "after_ask"
	reasonNextTurn    = "next_turn"
	reasonNotes       = "notes"
	reasonCatchUp     = "catch_up"
)

// plan writes down what was decided.
func (p *rolePlanner) plan() *continuo.Plan {
	in, log := p.base.in, p.log
	plan := &continuo.Plan{
		View: p.base.view.Name, ViewHash: p.base.hash, At: in.At, Window: p.placed.window, Moved: p.placed.moved,
		Messages: p.write(p.placed),
	}
	if n := len(log.turn); n > 0 && log.turn[n-1].unfinished() {
		plan.Cycle = newestSeq(plan.Messages)
	}
	before := len(plan.Messages)
	for _, piece := range p.open {
		plan.Messages = append(plan.Messages, piece.messages...)
	}
	plan.Items = p.fold(p.items())
	plan.Totals = totals(plan)
	limits := p.base.limits()
	plan.Limits = continuo.Size{Messages: p.most, Chars: limits.Chars, Tokens: limits.Tokens}
	plan.Totals.RowsRead, plan.Totals.PromptSize = log.rows, in.Prompt
	plan.Role = p.rolePlan()
	plan.Role.Before = before
	return plan
}

func newestSeq(messages []continuo.Message) (seq int64) {
	for i := range messages {
		seq = max(seq, messages[i].Seq)
	}
	return seq
}

// rolePlan says what the plan means for the role. A message that a summary stands for counts as shown.
func (p *rolePlanner) rolePlan() *continuo.RolePlan {
	log, l := p.log, p.placed
	role := &continuo.RolePlan{Name: p.role.Name, Kind: string(p.role.Kind), Cursor: p.role.Cursor, Through: log.end}
	if log.ask != nil {
		role.Through = log.ask.Seq
	}
	count := func(m countedMessage, inPlace bool) {
		whole := inPlace || p.isRequest(m.seq)
		switch {
		case !m.isNew:
		case !whole && l.covers(m.seq):
			role.News++
			role.Summarized++
		case whole || m.seq <= log.shown:
			role.News++
		}
	}
	for _, m := range log.messages {
		count(countedMessage{m.seq(), m.isNew}, p.shows(l, m))
	}
	for _, m := range log.above {
		count(m, false)
	}
	waiting := p.skipped(l)
	if log.held != nil {
		waiting = append(waiting, log.held.seq())
	}
	role.Waiting = len(waiting)
	for _, seq := range waiting {
		role.Through = min(role.Through, seq-1)
	}
	role.Through = max(role.Through, role.Cursor, log.shown)
	role.Lacks = p.lacks()
	return role
}

// lacks says what a summary should stand for before the role is asked: notes or a summary where the window has grown
// enough, or has to leave something out, and a catch-up where more is new than fits. Nil for nothing.
func (p *rolePlanner) lacks() *continuo.RoleLack {
	log, l := p.log, p.placed
	skipped := p.skipped(l)
	before := log.end // the last seq that is left out
	if l.first < len(log.messages) {
		before = log.messages[l.first].seq() - 1
	}
	lack := &continuo.RoleLack{From: p.role.Since + 1, Through: before, Known: l.window.Summary}
	if p.role.Kind != RoleMemory && p.role.Kind != RoleSummary {
		lack.From, lack.Messages = p.role.Cursor+1, p.newBefore(l.first)
		if len(skipped) == 0 {
			return nil
		}
		return lack
	}
	known := p.role.Since
	if best := p.usualStandIn(); best != nil {
		known = best.Summary.Through
	}
	shown := len(log.messages) - l.first
	since := p.role.Cursor - known // entries; one that remembers is shown notes only when its memory is lost
	switch grown := !p.role.Whole && shown > p.role.Newest+p.role.growth(); {
	case p.role.Kind == RoleMemory && (grown || before > known && p.left(l) != 0 || p.role.Remembers && since > 2*rememberedGrowth):
		lack.Through = max(p.role.Cursor, lastOf(skipped))
	case grown && p.role.Newest == 0:
		lack.Through = log.end
	case grown:
		lack.Through = log.messages[len(log.messages)-p.role.Newest].seq() - 1
	case p.left(l) == 0:
		return nil
	}
	if lack.Through <= known {
		return nil
	}
	return lack
}

// newBefore counts the messages before one that are new to the role, without those that are shown as requests; 0 where
// not all were counted.
func (p *rolePlanner) newBefore(first int) (count int) {
	if p.log.uncounted {
		return 0
	}
	return len(p.newLeftOut(layout{first: first}))
}

// lastOf is the largest of seqs; 0 for none.
func lastOf(seqs []int64) int64 {
	if len(seqs) == 0 {
		return 0
	}
	return slices.Max(seqs)
}

// items returns the verdicts on all entries that were read, by seq.
func (p *rolePlanner) items() []continuo.PlanItem {
	items := map[int64]continuo.PlanItem{}
	put := func(e *continuo.Entry, verdict continuo.Verdict, reason string, after *continuo.Size) {
		before := sizeStored(e)
		items[e.Seq] = continuo.PlanItem{Seq: e.Seq, Role: e.Role, Verdict: verdict, Reason: reason, Before: &before, After: after}
	}
	for _, e := range p.log.excluded {
		put(e.entry, continuo.Excluded, e.reason, nil)
	}
	for _, part := range p.around(p.placed) {
		if part.entry != nil {
			put(part.entry, verdictOf(part.cut), p.partReason(part), &part.size)
		}
	}
	for i, m := range p.log.messages {
		p.messageItems(i, m, put)
	}
	if p.log.held != nil {
		for _, e := range p.log.held.unit.entries {
			put(e, continuo.Dropped, reasonNextTurn, nil)
		}
	}
	var list []continuo.PlanItem
	for _, item := range items {
		list = append(list, item)
	}
	list = append(list, p.turnItems()...)
	slices.SortFunc(list, func(x, y continuo.PlanItem) int { return cmp.Compare(x.Seq, y.Seq) })
	return list
}

// messageItems gives the verdicts on a message and on the results of its calls.
func (p *rolePlanner) messageItems(i int, m *roleMessage, put func(*continuo.Entry, continuo.Verdict, string, *continuo.Size)) {
	if i < p.placed.first {
		for _, e := range m.unit.entries {
			if p.isRequest(e.Seq) {
				continue // a block shows it
			}
			verdict, reason := p.unshown(e.Seq)
			put(e, verdict, reason, nil)
		}
		return
	}
	size, cut := m.size, m.short
	if p.placed.cut != "" && i == len(p.log.messages)-1 {
		size, cut = p.sizeOf(p.textOf(m, p.placed.cut)), true
	}
	size.Messages = 1
	reason := reasonSeen
	if m.isNew {
		reason = reasonNew
	}
	for at, e := range m.unit.entries {
		if at == 0 {
			put(e, verdictOf(cut), reason, &size)
			continue
		}
		put(e, continuo.Truncated, reason, &continuo.Size{}) // its line stands in the message
	}
}

func verdictOf(cut bool) continuo.Verdict {
	if cut {
		return continuo.Truncated
	}
	return continuo.Kept
}

// turnItems are the verdicts on the role's own turn.
func (p *rolePlanner) turnItems() []continuo.PlanItem {
	var items []continuo.PlanItem
	b := *p.base
	b.units, b.window = p.log.turn, continuo.Window{Limit: p.openCut}
	shown := map[*unit]bool{}
	for _, piece := range p.open {
		if piece.unit != nil {
			shown[piece.unit] = true
			items = append(items, b.shownItems(piece)...)
		}
	}
	for _, u := range p.log.turn {
		if shown[u] {
			continue
		}
		for _, e := range u.entries {
			before := sizeStored(e)
			items = append(items, continuo.PlanItem{Seq: e.Seq, Role: e.Role, Verdict: continuo.Dropped, Reason: b.dropReason(), Before: &before})
		}
	}
	return items
}

// partReason says why something is shown before or behind the messages.
func (p *rolePlanner) partReason(part rolePart) string {
	switch {
	case part.request && !part.behind:
		return reasonOriginal
	case part.request && part.entry.Seq > p.role.Cursor:
		return reasonNew
	case part.request:
		return reasonLatestUser
	}
	return standInReason(part.entry)
}

// standInReason names what stands for entries.
func standInReason(e *continuo.Entry) string {
	switch e.PartType {
	case continuo.PartNotes:
		return reasonNotes
	case continuo.PartCatchUp:
		return reasonCatchUp
	}
	return reasonSummary
}

// unshown says what became of an entry before the messages that are shown.
func (p *rolePlanner) unshown(seq int64) (continuo.Verdict, string) {
	l := p.placed
	switch {
	case seq <= p.role.Since:
		return continuo.Excluded, reasonBeforeReset
	case l.covers(seq):
		return continuo.Summarized, standInReason(l.standIn)
	case seq > max(p.role.Cursor, p.log.shown):
		return continuo.Dropped, reasonNextTurn
	case p.onlyNew(l.standIn):
		return continuo.Excluded, reasonSeen
	case l.window.Limit == "":
		return continuo.Dropped, "before_window"
	}
	return continuo.Dropped, "over_" + l.window.Limit
}

// fold fills the gaps between items with runs of what was not read, and joins neighbours that are not shown for the
// same reason.
func (p *rolePlanner) fold(items []continuo.PlanItem) []continuo.PlanItem {
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
			item.Verdict, item.Reason = p.unshown(next)
			next = p.runEnd(next, through) + 1
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
	unread(p.base.in.At)
	return folded
}

// runEnd is the last seq up to through for which what is said of seq holds for all that was not read.
func (p *rolePlanner) runEnd(seq, through int64) int64 {
	ends := []int64{p.role.Since, p.role.Cursor, p.log.shown}
	if e := p.placed.standIn; e != nil {
		ends = append(ends, e.Summary.From-1, e.Summary.Through)
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
