package window

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// unit is what is shown or left out as one: a message, or an assistant message with calls and all their
// results.
type unit struct {
	entries []*continuo.Entry // in log order
	group   bool              // has calls
	missing []string          // calls without a result
	shapes  [levels]shape     // by level; made when first asked for
}

// shape is a unit at one level.
type shape struct {
	made     bool
	messages []continuo.Message
	verdicts []continuo.Verdict // of entries
	size     continuo.Size
}

func (u *unit) first() int64 { return u.entries[0].Seq }
func (u *unit) last() int64  { return u.entries[len(u.entries)-1].Seq }

// isUser reports whether the unit is a user message.
func (u *unit) isUser() bool { return u.entries[0].Role == continuo.User }

// unfinished reports whether the unit, standing last, leaves a cycle to go on with.
func (u *unit) unfinished() bool {
	return u.group || u.entries[0].Error != nil || u.entries[0].IsCue()
}

// noResult is what a call without a result is answered with: made up by the plan, not in the log.
const noResult = "[No result: the call was still open when this request was built.]"

// at returns the unit in the shape of a level.
func (u *unit) at(s shaper, l level) *shape {
	if !u.group {
		l = whole // nothing of it can be cut
	}
	result := &u.shapes[l]
	if result.made {
		return result
	}
	result.made = true
	for _, entry := range u.entries {
		message, verdict := s.message(entry, l)
		result.messages = append(result.messages, message)
		result.verdicts = append(result.verdicts, verdict)
	}
	for _, id := range u.missing {
		message := continuo.Message{Seq: u.first(), Role: continuo.Tool, Content: continuo.Text(noResult), ToolCallID: id}
		message.Size = s.size(&message, false)
		result.messages = append(result.messages, message)
	}
	for _, message := range result.messages {
		result.size = result.size.Add(message.Size)
	}
	return result
}

// exclusion says why an entry is no part of any unit.
type exclusion struct {
	entry  *continuo.Entry
	reason string
}

// The reasons for which an entry is left out whatever the budget.
const (
	reasonUIOnly     = "ui_only"
	reasonOrphan     = "orphan_tool_result"
	reasonEmpty      = "empty"
	reasonThinking   = "thinking"
	reasonSystem     = "system_prompt"
	reasonCollapsed  = "collapsed"
	reasonUnanswered = "unanswered_call"
	reasonAttempt    = "failed_attempt"
)

// exclude returns why a view never shows an entry, or "".
func exclude(view View, e *continuo.Entry) string {
	switch {
	case e.Hidden && e.Role == continuo.Tool && len(e.Repairs) > 0:
		return reasonOrphan
	case e.Hidden:
		return reasonUIOnly
	case e.Role == continuo.System && view.SkipSystem && !e.IsCue():
		return reasonSystem
	case e.IsCollapsed && !view.ShowCollapsed && e.Role == continuo.System:
		return reasonCollapsed
	case e.Role != continuo.Assistant || e.HasCalls() || e.Error != nil || !e.Content.IsEmpty():
		return ""
	case e.Reasoning != nil:
		return reasonThinking
	default:
		return reasonEmpty
	}
}

// assembler makes units of entries that come newest first.
type assembler struct {
	view     View
	results  []*continuo.Entry // tool entries whose assistant entry has not come yet, newest first
	excluded []exclusion
	// attempts leaves out failed attempts that the conversation has gone on from.
	attempts bool
	attempt  attempt
}

// add takes the next older entry and returns the unit that it completes, if any.
func (a *assembler) add(entry *continuo.Entry) *unit {
	reason := exclude(a.view, entry)
	if reason == "" && a.attempts && a.attempt.leavesOut(entry) {
		reason = reasonAttempt
	}
	if reason != "" {
		a.excluded = append(a.excluded, exclusion{entry, reason})
		return nil
	}
	if entry.Role == continuo.Tool {
		a.results = append(a.results, entry)
		return nil
	}
	results := a.results
	a.results = nil
	slices.Reverse(results)
	u := &unit{entries: []*continuo.Entry{entry}, group: entry.HasCalls()}
	for _, call := range entry.ToolCalls {
		u.missing = append(u.missing, call.ID)
	}
	for _, result := range results {
		open := slices.Index(u.missing, result.ToolCallID)
		if open < 0 {
			a.excluded = append(a.excluded, exclusion{result, reasonOrphan})
			continue
		}
		u.missing = slices.Delete(u.missing, open, open+1)
		u.entries = append(u.entries, result)
	}
	a.attempt = attempt{newer: entry}
	return u
}

// finish says that no older entry comes: results that wait are orphans.
func (a *assembler) finish() {
	for _, result := range a.results {
		a.excluded = append(a.excluded, exclusion{result, reasonOrphan})
	}
	a.results = nil
}
