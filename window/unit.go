package window

import (
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Unit is what is shown or left out as a whole: a message, or a group, which is an assistant message with
// calls and all their results.
type Unit struct {
	Entries []*continuo.Entry // in log order
	Group   bool              // it has calls
	missing []string          // calls without a result
	givenUp []string          // by entry, why the window gives it up, "" where it does not; nil for no entry
	shapes  [levels]*Shape    // by level; made at first use
	sizes   [levels]continuo.Size
}

// Shape is a unit at one level: its messages, of which the first are those of its entries, in order.
type Shape struct {
	Messages []Message
	Size     continuo.Size
	verdicts []Verdict // of entries
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
func (u *Unit) at(s *shaper, l Level) *Shape {
	l = u.effective(l)
	if u.shapes[l] != nil {
		return u.shapes[l]
	}
	result := &Shape{
		Messages: make([]Message, 0, len(u.Entries)+len(u.missing)),
		verdicts: make([]Verdict, 0, len(u.Entries)),
	}
	result.Messages, result.verdicts = u.appendTo(s, l, result.Messages, result.verdicts)
	for i := range result.Messages {
		result.Size = result.Size.Add(result.Messages[i].Size)
	}
	u.shapes[l], u.sizes[l] = result, result.Size
	return result
}

// giveUp sets which entries the window gives up.
func (u *Unit) giveUp(g *continuo.GivenUp) {
	var reasons []string
	for i, e := range u.Entries {
		reason := givenUpAs(g, e.Seq)
		if reason != "" && reasons == nil {
			reasons = make([]string, len(u.Entries))
		}
		if reason != "" {
			reasons[i] = reason
		}
	}
	if !slices.Equal(reasons, u.givenUp) {
		u.givenUp, u.shapes, u.sizes = reasons, [levels]*Shape{}, [levels]continuo.Size{}
	}
}

// whyGivenUp is the reason for which the window gives an entry up; "" where it does not.
func (u *Unit) whyGivenUp(i int) string {
	if u.givenUp == nil {
		return ""
	}
	return u.givenUp[i]
}

// effective is a level, or Whole for a unit in which nothing can be cut.
func (u *Unit) effective(l Level) Level {
	if !u.Group {
		return Whole
	}
	return l
}

// size returns the size of the unit at a level. It shapes the unit only where the stored counts do not give the size.
func (u *Unit) size(s *shaper, l Level) continuo.Size {
	l = u.effective(l)
	if u.sizes[l].Messages > 0 {
		return u.sizes[l]
	}
	size, known := u.storedSize(s, l)
	if !known {
		return u.at(s, l).Size
	}
	u.sizes[l] = size
	return size
}

// storedSize is the size of the unit at a level by the counts made at append; not known where an entry is shown in
// another form.
func (u *Unit) storedSize(s *shaper, l Level) (size continuo.Size, known bool) {
	if len(u.missing) > 0 || u.givenUp != nil {
		return continuo.Size{}, false
	}
	for _, entry := range u.Entries {
		one, ok := s.storedSize(entry, l)
		if !ok {
			return continuo.Size{}, false
		}
		size = size.Add(one)
	}
	return size, true
}

// appendTo appends the unit's messages at a level, of which the first are those of its entries, and the entries'
// verdicts.
func (u *Unit) appendTo(s *shaper, l Level, messages []Message, verdicts []Verdict) ([]Message, []Verdict) {
	l = u.effective(l)
	if shape := u.shapes[l]; shape != nil {
		return append(messages, shape.Messages...), append(verdicts, shape.verdicts...)
	}
	for i, entry := range u.Entries {
		message, verdict := s.message(entry, l, u.whyGivenUp(i))
		messages, verdicts = append(messages, message), append(verdicts, verdict)
	}
	for _, id := range u.missing {
		message := Message{Seq: u.First(), Role: continuo.Tool, Content: continuo.Text(noResult), ToolCallID: id}
		message.Size = s.size(&message, false)
		messages = append(messages, message)
	}
	return messages, verdicts
}

// Exclusion is an entry that belongs to no unit, with the reason.
type Exclusion struct {
	Entry  *continuo.Entry
	Reason string
}

// exclude returns why a view never shows an entry, or "".
func exclude(view *View, e *continuo.Entry) string {
	switch {
	case view.RecallShare > 0 && e.HoldsRecall() && e.Recall.Role == "":
		return ""
	case e.Hidden && e.Role == continuo.Tool && len(e.Repairs) > 0:
		return ReasonOrphan
	case e.Hidden:
		return ReasonUIOnly
	case len(view.Without) > 0 && slices.Contains(view.Without, e.Seq):
		return ReasonDroppedByClient
	case e.Role == continuo.System && view.SkipSystem && !e.IsCue():
		return ReasonSystem
	case e.IsCollapsed && !view.ShowCollapsed && e.Role == continuo.System:
		return ReasonCollapsed
	case e.Role != continuo.Assistant || e.HasCalls() || e.Error != nil || !e.Content.IsEmpty():
		return ""
	case e.Reasoning != nil:
		return ReasonThinking
	case keepsItems(e):
		return ""
	default:
		return ReasonEmpty
	}
}

// keepsItems reports whether an entry has items of a provider, such as a tool that it ran or a compaction: they go back to
// it although the entry says nothing to others.
func keepsItems(e *continuo.Entry) bool {
	for _, data := range e.Vendor {
		if _, _, ok := rawjson.Find(data, "items"); ok {
			return true
		}
	}
	return false
}

// Assembler builds units from entries that come newest first.
type Assembler struct {
	view     View
	results  []*continuo.Entry // tool entries before their assistant entry is read, newest first
	excluded []Exclusion
	deleted  []int64 // seqs of entries of which a newer one says that they are deleted
	// attempts leaves out failed attempts after which the conversation continued.
	attempts bool
	attempt  attempt
	units    []Unit            // not used yet
	entries  []*continuo.Entry // the same, of the units' Entries
}

// NewAssembler returns an assembler of the entries that a view does not exclude. Failed attempts are units
// too.
func NewAssembler(view View) *Assembler { return &Assembler{view: view} }

// Add reads the next older entry and returns the unit that it completes, if any.
func (a *Assembler) Add(entry *continuo.Entry) *Unit {
	if seq, _, ok := entry.Deletion(); ok {
		a.deleted = append(a.deleted, seq)
	}
	reason := exclude(&a.view, entry)
	if reason == "" && a.recallsDeleted(entry) {
		reason = ReasonDeleted
	}
	if reason == "" && entry.HoldsRecall() { // between a message and the attempt before
		u := a.unit(1)
		u.Entries = append(u.Entries, entry)
		return u
	}
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
	u := a.unit(1 + len(a.results))
	u.Entries, u.Group = append(u.Entries, entry), entry.HasCalls()
	var few [8]bool
	answered := append(few[:0], make([]bool, len(entry.ToolCalls))...)
	for _, result := range slices.Backward(a.results) {
		open := openCall(entry, answered, result.ToolCallID)
		if open < 0 {
			a.excluded = append(a.excluded, Exclusion{result, ReasonOrphan})
			continue
		}
		answered[open] = true
		u.Entries = append(u.Entries, result)
	}
	for i, call := range entry.ToolCalls {
		if !answered[i] {
			u.missing = append(u.missing, call.ID)
		}
	}
	a.results = a.results[:0]
	a.attempt = attempt{newer: entry}
	if len(a.deleted) > 0 && slices.ContainsFunc(u.Entries, a.isDeleted) {
		for _, left := range slices.Backward(u.Entries) {
			a.excluded = append(a.excluded, Exclusion{left, ReasonDeleted})
		}
		return nil
	}
	return u
}

// recallsDeleted reports whether an entry shows another one again that a newer entry deletes.
func (a *Assembler) recallsDeleted(entry *continuo.Entry) bool {
	return len(a.deleted) > 0 && entry.HoldsRecall() && slices.ContainsFunc(entry.Recall.Items, func(item continuo.RecallItem) bool {
		return item.ConversationID == "" && slices.Contains(a.deleted, item.Seq)
	})
}

// isDeleted reports whether a newer entry deletes an entry.
func (a *Assembler) isDeleted(entry *continuo.Entry) bool {
	return slices.Contains(a.deleted, entry.Seq)
}

// unit returns a new unit with room for entries. Units and their entries are allocated many at once.
func (a *Assembler) unit(entries int) *Unit {
	const units, pointers = 16, 64
	if len(a.units) == 0 {
		a.units = make([]Unit, units)
	}
	if len(a.entries) < entries {
		a.entries = make([]*continuo.Entry, max(entries, pointers))
	}
	u := &a.units[0]
	u.Entries = a.entries[:0:entries]
	a.units, a.entries = a.units[1:], a.entries[entries:]
	return u
}

// openCall returns the index of an entry's first unanswered call with an id, -1 for none.
func openCall(entry *continuo.Entry, answered []bool, id string) int {
	for i := range entry.ToolCalls {
		if !answered[i] && entry.ToolCalls[i].ID == id {
			return i
		}
	}
	return -1
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
