package window

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// Unit is what is shown or left out as a whole: a message, or a group, which is an assistant message with
// calls and all their results.
type Unit struct {
	Entries []*continuo.Entry // in log order
	Group   bool              // it has calls
	missing []string          // calls without a result
	shapes  [levels]Shape     // by level; made at first use
}

// Shape is a unit at one level: its messages, of which the first are those of its entries, in order.
type Shape struct {
	Messages []Message
	Size     continuo.Size
	verdicts []Verdict // of entries
	made     bool
}

// MessageUnit is a user message that is not in the log yet.
func MessageUnit(content continuo.Content) *Unit {
	return &Unit{Entries: []*continuo.Entry{{Role: continuo.User, Content: content}}}
}

// First is the seq of the unit's first entry.
func (u *Unit) First() int64 { return u.Entries[0].Seq }

// Last is the seq of the unit's last entry.
func (u *Unit) Last() int64 { return u.Entries[len(u.Entries)-1].Seq }

// IsUser reports whether the unit is a user message.
func (u *Unit) IsUser() bool { return u.Entries[0].Role == continuo.User }

// Unfinished reports whether the unit, as the last one of a log, leaves its cycle open: the model has to be
// called again.
func (u *Unit) Unfinished() bool {
	return u.Group || u.Entries[0].Error != nil || u.Entries[0].IsCue()
}

// Open reports whether calls of the unit have no results yet.
func (u *Unit) Open() bool { return len(u.missing) > 0 }

// noResult is the text of the result that a plan makes up for a call without one; it is not in the log.
const noResult = "[No result: the call was still open when this request was built.]"

// at returns the unit in the shape of a level.
func (u *Unit) at(s shaper, l Level) *Shape {
	if !u.Group {
		l = Whole // nothing in it can be cut
	}
	result := &u.shapes[l]
	if result.made {
		return result
	}
	result.made = true
	for _, entry := range u.Entries {
		message, verdict := s.message(entry, l)
		result.Messages = append(result.Messages, message)
		result.verdicts = append(result.verdicts, verdict)
	}
	for _, id := range u.missing {
		message := Message{Seq: u.First(), Role: continuo.Tool, Content: continuo.Text(noResult), ToolCallID: id}
		message.Size = s.size(&message, false)
		result.Messages = append(result.Messages, message)
	}
	for _, message := range result.Messages {
		result.Size = result.Size.Add(message.Size)
	}
	return result
}

// Exclusion is an entry that belongs to no unit, with the reason.
type Exclusion struct {
	Entry  *continuo.Entry
	Reason string
}

// exclude returns why a view never shows an entry, or "".
func exclude(view View, e *continuo.Entry) string {
	switch {
	case e.Hidden && e.Role == continuo.Tool && len(e.Repairs) > 0:
		return ReasonOrphan
	case e.Hidden:
		return ReasonUIOnly
	case e.Role == continuo.System && view.SkipSystem && !e.IsCue():
		return ReasonSystem
	case e.IsCollapsed && !view.ShowCollapsed && e.Role == continuo.System:
		return ReasonCollapsed
	case e.Role != continuo.Assistant || e.HasCalls() || e.Error != nil || !e.Content.IsEmpty():
		return ""
	case e.Reasoning != nil:
		return ReasonThinking
	default:
		return ReasonEmpty
	}
}

// Assembler builds units from entries that come newest first.
type Assembler struct {
	view     View
	results  []*continuo.Entry // tool entries before their assistant entry is read, newest first
	excluded []Exclusion
	// attempts leaves out failed attempts after which the conversation continued.
	attempts bool
	attempt  attempt
}

// NewAssembler returns an assembler of the entries that a view does not exclude. Failed attempts are units
// too.
func NewAssembler(view View) *Assembler { return &Assembler{view: view} }

// Add reads the next older entry and returns the unit that it completes, if any.
func (a *Assembler) Add(entry *continuo.Entry) *Unit {
	reason := exclude(a.view, entry)
	if reason == "" && a.attempts && a.attempt.leavesOut(entry) {
		reason = ReasonAttempt
	}
	if reason != "" {
		a.excluded = append(a.excluded, Exclusion{entry, reason})
		return nil
	}
	if entry.Role == continuo.Tool {
		a.results = append(a.results, entry)
		return nil
	}
	results := a.results
	a.results = nil
	slices.Reverse(results)
	u := &Unit{Entries: []*continuo.Entry{entry}, Group: entry.HasCalls()}
	for _, call := range entry.ToolCalls {
		u.missing = append(u.missing, call.ID)
	}
	for _, result := range results {
		open := slices.Index(u.missing, result.ToolCallID)
		if open < 0 {
			a.excluded = append(a.excluded, Exclusion{result, ReasonOrphan})
			continue
		}
		u.missing = slices.Delete(u.missing, open, open+1)
		u.Entries = append(u.Entries, result)
	}
	a.attempt = attempt{newer: entry}
	return u
}

// Waiting reports whether results were read whose calls have not been read yet.
func (a *Assembler) Waiting() bool { return len(a.results) > 0 }

// Finish ends the input, and returns the entries that belong to no unit. Results without their calls are
// orphans.
func (a *Assembler) Finish() []Exclusion {
	for _, result := range a.results {
		a.excluded = append(a.excluded, Exclusion{result, ReasonOrphan})
	}
	a.results = nil
	return a.excluded
}
