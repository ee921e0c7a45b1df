package request

import (
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// NoResult is the result of a call to which the client sent none.
const NoResult = "error: the client sent no result of this call"

// repair makes entries that the log takes of those that break its rules. What cannot be shown at its position is hidden
// and names the rule; a call without a result gets one that says so. The same messages at the beginning of a longer list
// become the same entries, so that the list is recognised when it has grown. Results at the beginning
// stay: the log may have their calls.
func (r *Request) repair() {
	if len(r.Problems) == 0 && len(r.Open) == 0 {
		return
	}
	for i := range r.Entries {
		repairShape(&r.Entries[i], i)
	}
	p := &repairing{entries: r.Entries, taken: make([]bool, len(r.Entries)), first: make([]int, len(r.Entries)+1)}
	for i := range p.entries {
		p.first[i] = len(p.out)
		if !p.taken[i] {
			p.add(i)
		}
	}
	p.first[len(p.entries)] = len(p.out)
	for i := range r.Messages {
		m := &r.Messages[i]
		end := p.first[min(m.First+m.Count, len(p.entries))]
		m.First = p.first[m.First]
		m.Count = end - m.First
	}
	for _, problem := range r.Problems {
		problem.Entry = p.first[problem.Entry]
	}
	r.Entries = p.out
}

// repairShape makes an entry one that the log takes where its neighbours allow it.
func repairShape(entry *continuo.Entry, at int) {
	repaired := func(rule continuo.Rule) { entry.Repairs = append(entry.Repairs, string(rule)) }
	if len(entry.ToolCalls) > 0 {
		entry.ToolCalls = slices.Clone(entry.ToolCalls)
	}
	for i := range entry.ToolCalls {
		call := &entry.ToolCalls[i]
		same := func(other continuo.ToolCall) bool { return other.ID == call.ID }
		if call.ID == "" || slices.ContainsFunc(entry.ToolCalls[:i], same) {
			call.ID = fmt.Sprintf("%s_%d_%d", call.ID, at, i)
			repaired(continuo.RuleMissingCallID)
		}
		if call.Name == "" {
			call.Name = "unknown"
			repaired(continuo.RuleBadFunction)
		}
		if call.Type != "" && call.Type != "function" && call.Type != "custom" {
			call.Type = "function"
			repaired(continuo.RuleBadFunction)
		}
	}
	alone := *entry
	alone.Repairs = nil
	if entry.Role == continuo.Tool { // whether it has a call is another question
		alone.Role, alone.ToolCallID = continuo.User, ""
	}
	err := new(continuo.Group).Accept(&alone)
	if err != nil && err.Rule == continuo.RuleNullContent {
		entry.Content = continuo.Text("")
		return
	}
	if err != nil {
		hide(entry, err.Rule)
	}
}

// hide hides an entry that breaks a rule: it is in the log, and no model is shown it.
func hide(entry *continuo.Entry, rule continuo.Rule) {
	entry.Hidden = true
	entry.Repairs = append(entry.Repairs, string(rule))
}

// repairing moves results to their calls.
type repairing struct {
	entries []continuo.Entry
	taken   []bool
	first   []int // of each entry, its position in out
	out     []continuo.Entry
	group   continuo.Group
	begun   bool // there was another entry than a result; the log may have the calls of results before it
}

// add adds an entry, and behind a call its results, wherever they are.
func (p *repairing) add(i int) {
	entry := p.entries[i]
	if err := p.group.Accept(&entry); err != nil && (p.begun || entry.Role != continuo.Tool) {
		hide(&entry, err.Rule)
	}
	p.begun = p.begun || entry.Role != continuo.Tool
	p.out = append(p.out, entry)
	if !entry.HasCalls() || entry.Hidden {
		return
	}
	p.collect(i)
	for _, call := range p.group.OpenCalls() {
		missing := continuo.Entry{Role: continuo.Tool, PartType: continuo.PartInterrupted, ToolCallID: call.ID, ToolName: call.Name, Content: continuo.Text(NoResult)}
		_ = p.group.Accept(&missing)
		p.out = append(p.out, missing)
	}
}

// collect takes the results of the calls of an entry, up to the next calls with the same ids.
func (p *repairing) collect(i int) {
	for j := i + 1; j < len(p.entries) && len(p.group.Open) > 0; j++ {
		next := &p.entries[j]
		if next.HasCalls() && slices.ContainsFunc(next.ToolCalls, func(call continuo.ToolCall) bool { return slices.Contains(p.group.Open, call.ID) }) {
			return
		}
		if p.taken[j] || next.Role != continuo.Tool || !slices.Contains(p.group.Open, next.ToolCallID) {
			continue
		}
		_ = p.group.Accept(next)
		p.taken[j] = true
		p.out = append(p.out, *next)
	}
}
