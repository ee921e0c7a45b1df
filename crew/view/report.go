package view

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// report makes the plan of an arrangement.
func (p *planner) report(a arrangement) *window.Plan {
	b := p.backlog
	plan := &window.Plan{
		View: p.definition.Name, ViewHash: p.hash, At: p.in.At, Window: a.window, Moved: a.moved,
		Messages: p.write(a.layout),
	}
	if n := len(b.turn); n > 0 && b.turn[n-1].Unfinished() {
		plan.Cycle = newestSeq(plan.Messages)
	}
	before := len(plan.Messages)
	for _, group := range a.turn {
		plan.Messages = append(plan.Messages, group.messages...)
	}
	plan.Items = p.items(a)
	plan.Totals = window.Totals(plan)
	limits := p.request.Limits()
	plan.Limits = continuo.Size{Messages: p.maxMessages, Chars: limits.Chars, Tokens: limits.Tokens}
	plan.Totals.RowsRead, plan.Totals.PromptSize = b.rows, p.in.Prompt
	p.request.SetEstimate(plan)
	plan.Role = p.rolePlan(a.layout)
	plan.Role.Before = before
	return plan
}

func newestSeq(messages []window.Message) (seq int64) {
	for i := range messages {
		seq = max(seq, messages[i].Seq)
	}
	return seq
}

// rolePlan is the plan's effect on the role's cursor. A message that a summary covers counts as shown.
func (p *planner) rolePlan(l layout) *window.RolePlan {
	b := p.backlog
	role := &window.RolePlan{Name: p.role.Name, Kind: string(p.role.Kind), Cursor: p.role.Cursor, Through: b.end, Remembers: p.role.Remembers}
	if b.cue != nil {
		role.Through = b.cue.Seq
	}
	count := func(m countedMessage, inPlace bool) {
		whole := inPlace || b.isRequest(m.seq)
		switch {
		case !m.isNew:
		case !whole && covers(l.summary, m.seq):
			role.News++
			role.Summarized++
		case whole || m.seq <= b.shownThrough:
			role.News++
		}
	}
	for _, m := range b.messages {
		count(countedMessage{m.seq(), m.isNew}, p.shows(l, m))
	}
	for _, m := range b.older {
		count(m, false)
	}
	waiting := p.skipped(l)
	if b.held != nil {
		waiting = append(waiting, b.held.seq())
	}
	role.Waiting = len(waiting)
	for _, seq := range waiting {
		role.Through = min(role.Through, seq-1)
	}
	role.Through = max(role.Through, role.Cursor, b.shownThrough)
	role.Entries = p.shownEntries(l)
	role.Lacks = p.missingSummary(l)
	return role
}

// missingSummary returns the range that a summary should cover before the role is asked: notes or a summary where the
// window has grown enough, or must leave something out, and a catch-up where more is new than fits. Nil for none.
func (p *planner) missingSummary(l layout) *window.RoleLack {
	b := p.backlog
	skipped := p.skipped(l)
	before := b.end // the last seq that is left out
	if l.first < len(b.messages) {
		before = b.messages[l.first].seq() - 1
	}
	missing := &window.RoleLack{From: p.role.Since + 1, Through: before, Known: l.window.Summary}
	if p.role.Kind != Memory && p.role.Kind != Summary {
		missing.From, missing.Messages = p.role.Cursor+1, p.newBefore(l.first)
		if len(skipped) == 0 {
			return nil
		}
		return missing
	}
	known := p.role.Since
	if best := b.usualSummary(&p.role); best != nil {
		known = best.Summary.Through
	}
	shown := len(b.messages) - l.first
	since := p.role.Cursor - known // in entries; an agent that remembers is shown notes only when its memory is lost
	switch grown := !p.role.Whole && shown > p.role.Newest+p.role.growth(); {
	case p.role.Kind == Memory && (grown || before > known && p.left(l) != 0 || p.role.Remembers && since > 2*rememberedGrowth):
		missing.Through = max(p.role.Cursor, lastOf(skipped))
	case grown && p.role.Newest == 0:
		missing.Through = b.end
	case grown:
		missing.Through = b.messages[len(b.messages)-p.role.Newest].seq() - 1
	case p.left(l) == 0:
		return nil
	}
	if missing.Through <= known {
		return nil
	}
	return missing
}

// newBefore counts the messages before an index that are new to the role, without those that are shown as requests; 0
// where not all were counted.
func (p *planner) newBefore(first int) (count int) {
	if p.backlog.moreOlder {
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
