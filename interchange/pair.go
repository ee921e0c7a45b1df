package interchange

import (
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// lookAhead bounds the search for a late result, in messages after the first message that is no result.
const lookAhead = 1000

// pair matches calls and results: it moves every result right after its call, and hides results without a
// call. It depends only on the source's order, so that the same source always gives the same entries.
func pair(drafts []*draft, report *repairs) []*draft {
	p := &pairing{report: report, drafts: drafts, seen: map[string]bool{}}
	for _, d := range drafts {
		assignIDs(d, report)
	}
	for i, d := range drafts {
		switch {
		case d.taken:
		case d.isTool():
			p.orphan(d)
			p.out = append(p.out, d)
		case d.entry.HasCalls():
			p.out = append(p.out, d)
			p.answer(i)
		default:
			p.section = nil
			p.out = append(p.out, d)
		}
	}
	return p.out
}

// pairing is the state of one pass over a conversation.
type pairing struct {
	report  *repairs
	drafts  []*draft
	out     []*draft
	seen    map[string]bool // the original ids of all calls so far
	section *openGroup      // the group whose results may follow, nil after any other message
}

// openGroup is one assistant message with its calls that have no result yet.
type openGroup struct {
	of       *draft
	answered []bool
	open     int
	named    map[string]bool // ids named by the results right after it
}

// assignIDs gives every call of an assistant message a unique id.
func assignIDs(d *draft, report *repairs) {
	used := map[string]bool{}
	for _, call := range d.entry.ToolCalls {
		used[call.ID] = true
		d.sourceIDs = append(d.sourceIDs, call.ID)
	}
	given := map[string]bool{}
	for i := range d.entry.ToolCalls {
		call := &d.entry.ToolCalls[i]
		rule, id := continuo.Rule(""), call.ID
		switch {
		case call.ID == "" && d.record.Legacy:
			rule = RuleLegacyFunctionCall
		case call.ID == "":
			rule = continuo.RuleMissingCallID
		case given[call.ID]:
			rule = continuo.RuleDuplicateCallID
		}
		if rule != "" {
			if id == "" {
				id = fmt.Sprintf("call_import_%d_%d", d.record.Index, i)
			}
			id = freeID(id, used)
			report.add(d, rule, "The call of %s got the id %s.", call.Name, id)
			call.ID, used[id] = id, true
			d.forgetBlocks()
		}
		given[id] = true
	}
}

func freeID(id string, used map[string]bool) string {
	free := id
	for n := 2; used[free]; n++ {
		free = fmt.Sprintf("%s_%d", id, n)
	}
	return free
}

// answer puts the results of a message's calls after it, and substitutes for missing ones.
func (p *pairing) answer(i int) {
	d := p.drafts[i]
	group := &openGroup{of: d, answered: make([]bool, len(d.entry.ToolCalls)), open: len(d.entry.ToolCalls)}
	group.named = p.resultsAfter(i)
	for _, id := range d.sourceIDs {
		p.seen[id] = true
	}
	p.section = group
	p.collect(i, group)
	p.addMissingResults(i, group)
}

// resultsAfter lists the ids named by the results right after a message.
func (p *pairing) resultsAfter(i int) map[string]bool {
	named := map[string]bool{}
	for _, d := range p.drafts[i+1:] {
		if !d.isTool() {
			break
		}
		named[d.entry.ToolCallID] = true
	}
	return named
}

// collect finds the results of the message at i: those right after it, and late ones separated from it by
// user messages only, or by assistant messages with calls of their own: a parallel group that the source
// split.
func (p *pairing) collect(i int, group *openGroup) {
	people, calls := false, false
	for j := i + 1; j < len(p.drafts) && group.open > 0; j++ {
		d := p.drafts[j]
		if (people || calls) && j-i > lookAhead {
			return
		}
		switch {
		case d.taken:
		case d.isTool():
			if call, ok := group.match(d, people || calls); ok {
				p.take(d, group, call, people || calls)
			}
		case d.entry.Role != continuo.Assistant, d.hidden:
			if calls {
				return
			}
			people = true
		case people || !d.entry.HasCalls() || sharesID(d, group.of):
			return
		default:
			calls = true
		}
	}
}

func sharesID(a, b *draft) bool {
	return slices.ContainsFunc(a.sourceIDs, func(id string) bool { return slices.Contains(b.sourceIDs, id) })
}

// match finds the open call that a result answers. Results without an id are matched by order.
func (g *openGroup) match(d *draft, late bool) (call int, ok bool) {
	find := func(fits func(i int) bool) bool {
		for i := range g.answered {
			if !g.answered[i] && fits(i) {
				call = i
				return true
			}
		}
		return false
	}
	if id := d.entry.ToolCallID; id != "" {
		return call, find(func(i int) bool { return g.of.sourceIDs[i] == id })
	}
	if late {
		return 0, false
	}
	if d.record.Legacy && find(func(i int) bool { return g.of.sourceIDs[i] == "" && g.of.entry.ToolCalls[i].Name == d.entry.Name }) {
		return call, true
	}
	return call, find(func(i int) bool { return g.of.sourceIDs[i] == "" }) ||
		find(func(i int) bool { return !g.named[g.of.sourceIDs[i]] })
}

// take puts a result after its call.
func (p *pairing) take(d *draft, group *openGroup, call int, late bool) {
	group.answered[call] = true
	group.open--
	made := group.of.entry.ToolCalls[call]
	if came := d.entry.ToolCallID; came != made.ID {
		d.entry.ToolCallID = made.ID
		d.forgetBlocks()
		switch {
		case d.record.Legacy:
			p.report.add(d, RuleLegacyFunctionCall, "The result of %s was assigned to the call %s.", made.Name, made.ID)
		case came == "":
			p.report.add(d, continuo.RuleToolMissingID, "The result without an id was assigned to the call %s.", made.ID)
		default:
			p.report.add(d, continuo.RuleDuplicateCallID, "The result was assigned to the call %s.", made.ID)
		}
	}
	if late {
		p.report.add(d, RuleLateResult, "The result of %s was moved up to follow its call.", made.ID)
	}
	if hidden := group.of.entry.Hidden; d.entry.Hidden != hidden {
		p.report.add(d, RuleSplitGroup, "The result of %s is shown to models or hidden as its call is.", made.ID)
		d.entry.Hidden = hidden
	}
	if d.entry.ToolName == "" {
		d.entry.ToolName = made.Name
	}
	d.taken = true
	p.out = append(p.out, d)
}

// addMissingResults adds a result for each call without one.
func (p *pairing) addMissingResults(i int, group *openGroup) {
	if group.open == 0 {
		return
	}
	var ids []string
	last := p.out[len(p.out)-1]
	for n, call := range group.of.entry.ToolCalls {
		if group.answered[n] {
			continue
		}
		d := &draft{record: record{Index: group.of.record.Index, Added: true}}
		d.entry = continuo.Entry{
			CreatedAt: last.entry.CreatedAt, Role: continuo.Tool, Content: continuo.Text(NoResult),
			ToolCallID: call.ID, ToolName: call.Name, Hidden: group.of.entry.Hidden,
		}
		d.mark(continuo.RuleUnanswered)
		ids = append(ids, call.ID)
		p.out = append(p.out, d)
	}
	rule := continuo.RuleUnanswered
	if p.onlyResultsFollow(i) {
		rule = RuleUnansweredAtEnd
	}
	p.report.list = append(p.report.list, Repair{
		Index: group.of.record.Index, Rule: rule,
		Action: fmt.Sprintf("A result that says none was recorded was added for %s.", strings.Join(ids, ", ")),
	})
}

// onlyResultsFollow reports whether only results follow the message at i.
func (p *pairing) onlyResultsFollow(i int) bool {
	for _, d := range p.drafts[i+1:] {
		if !d.isTool() {
			return false
		}
	}
	return true
}

// orphan hides a result without a call, and names the violated rule.
func (p *pairing) orphan(d *draft) {
	id := d.entry.ToolCallID
	switch {
	case d.record.Legacy:
		p.report.hide(d, RuleOrphanFunction, "no function call precedes it")
	case id == "":
		p.report.hide(d, continuo.RuleToolMissingID, "it names no call, and no call is left that it could answer")
	case p.section == nil:
		p.report.hide(d, continuo.RuleOrphanTool, "no call is open that it could answer")
	case slices.Contains(p.section.of.sourceIDs, id):
		p.report.hide(d, continuo.RuleDuplicateAnswer, "its call has a result already")
	case p.seen[id]:
		p.report.hide(d, RuleWrongGroup, "it answers a call of an earlier message")
	default:
		p.report.hide(d, continuo.RuleUnknownCallID, "no open call has its id")
	}
}
