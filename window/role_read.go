package window

import (
	"errors"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// read reads what the view needs of the log: all that is new, and of the rest as far as the kind of view goes.
func (r *roleBuild) read() error {
	unseen, err := r.unseen()
	if err != nil {
		return err
	}
	r.findAsk(unseen)
	r.takeTurn(unseen)
	if err := r.findNotes(); err != nil {
		return err
	}
	switch {
	case r.role.Whole:
		r.kind = RoleFull
	case r.kind == RoleMemory && r.notes == nil && r.role.Remembers:
		r.kind = RoleDelta
	case r.kind == RoleMemory && r.notes == nil:
		r.kind = RoleFull
	}
	for _, entry := range unseen {
		if entry.Seq <= r.end {
			r.take(entry)
		}
	}
	if err := r.readSeen(); err != nil {
		return err
	}
	r.words.finish()
	r.excluded = append(r.excluded, r.words.excluded...)
	slices.Reverse(r.talk)
	if r.kind == RoleSummary && r.summary == nil {
		r.kind = RoleFull
	}
	return r.findRequests()
}

// unseen reads what stands behind the role's cursor, newest first.
func (r *roleBuild) unseen() ([]*continuo.Entry, error) {
	seen := max(r.role.Cursor, r.role.Since)
	r.top = r.in.At + 1
	var entries []*continuo.Entry
	if r.in.At <= seen {
		return nil, nil
	}
	for entry, err := range r.source.Backward(r.in.At) {
		if err != nil {
			return nil, err
		}
		r.rowsRead++
		if entry.Seq <= seen {
			break
		}
		r.top = entry.Seq
		entries = append(entries, &entry)
	}
	return entries, nil
}

// findAsk finds the turn of the role that is under way: what it began with, and so where the talk ends.
func (r *roleBuild) findAsk(unseen []*continuo.Entry) {
	r.end = r.in.At
	answered := map[string]bool{}
	for _, e := range unseen {
		if e.Role == continuo.Assistant && !e.Hidden && !e.HasCalls() && e.Error == nil {
			answered[e.TurnID] = true
		}
		_, crew := continuo.CrewOf(e.WorkflowID)
		if e.RunEvent == nil || e.NodeID != r.role.Name || !crew && e.WorkflowID != "" || !r.role.isOf(e) {
			continue
		}
		switch e.RunEvent.Kind {
		case continuo.RunNodeFinished, continuo.CrewRoleFailed:
			return
		case continuo.RunNodeBegan:
			if !answered[e.TurnID] {
				r.ask, r.end = e, e.Seq-1
			}
			return
		}
	}
}

// takeTurn takes what stands behind the ask: of the role's turn it is shown, the rest is not shown yet.
func (r *roleBuild) takeTurn(unseen []*continuo.Entry) {
	turn := assembler{view: r.view}
	for _, e := range unseen {
		switch {
		case e.Seq <= r.end:
			continue
		case e == r.ask:
			r.excluded = append(r.excluded, exclusion{e, reasonUIOnly})
			continue
		case e.TurnID == "" || e.TurnID != r.ask.TurnID:
			r.excluded = append(r.excluded, exclusion{e, reasonAfterAsk})
			continue
		}
		r.learn(e)
		if u := turn.add(e); u != nil {
			r.units = append(r.units, u)
		}
	}
	turn.finish()
	r.excluded = append(r.excluded, turn.excluded...)
	slices.Reverse(r.units)
	// The text must not change while the turn goes on: what its requests teach counts for its own messages alone.
	r.openCorrection = r.correction
	r.correction, r.corrected = 1, false
}

// findNotes reads the role's notes.
func (r *roleBuild) findNotes() error {
	seq := r.role.Notes
	if r.role.Kind != RoleMemory || seq <= r.role.Since || seq > r.end {
		return nil
	}
	entry, err := r.first(seq)
	if err == nil && entry != nil && entry.Seq == seq && IsSummary(entry, r.role.Name) && entry.Summary.From > r.role.Since {
		r.notes = entry
	}
	return err
}

// first reads the entry at a seq; nil where there is none.
func (r *roleBuild) first(seq int64) (*continuo.Entry, error) {
	for entry, err := range r.source.Forward(seq) {
		if err != nil {
			return nil, err
		}
		r.rowsRead++
		return &entry, nil
	}
	return nil, nil
}

// take takes the next older entry of the talk.
func (r *roleBuild) take(e *continuo.Entry) {
	r.learn(e)
	if r.summary == nil && IsSummary(e, "") && e.Summary.From > r.role.Since {
		r.summary = e
	}
	if event := e.RunEvent; event != nil && event.Kind == continuo.RunNodeBegan {
		if r.again == nil {
			r.again = map[string]bool{}
		}
		r.again[e.NodeID] = event.Attempt > 1
	}
	if reason := excludeTalk(e); reason != "" {
		r.excluded = append(r.excluded, exclusion{e, reason})
		return
	}
	u := r.words.add(e)
	if u == nil {
		return
	}
	t := newTalk(u, r.role)
	switch {
	case t == nil, e.Error != nil && !t.own && r.again[e.NodeID]: // what it said when it was asked again stands for it
		r.leaveOut(u, reasonFailed)
	case t.own && r.role.Remembers && !r.role.Whole:
		r.leaveOut(u, reasonOwnWords)
	default:
		r.talk = append(r.talk, t)
	}
}

func (r *roleBuild) leaveOut(u *unit, reason string) {
	for _, entry := range u.entries {
		r.excluded = append(r.excluded, exclusion{entry, reason})
	}
}

// excludeTalk returns why an entry is never shown to a role, or "". What it leaves to the assembler is no talk either.
func excludeTalk(e *continuo.Entry) string {
	switch {
	case e.IsPlaceholder():
		return reasonPlaceholder
	case e.Hidden || e.Role == continuo.Tool || e.HasCalls():
		return ""
	case e.Role == continuo.System:
		return reasonSystem
	case e.Error == nil && (e.Role == continuo.User || e.Reasoning == nil) && isBlankTalk(e):
		return reasonEmpty
	case e.Error == nil && isBlankTalk(e):
		return reasonThinking
	}
	return ""
}

// IsBlank reports whether an entry says nothing that anybody could see.
func IsBlank(e *continuo.Entry) bool { return !e.HasCalls() && isBlankTalk(e) }

func isBlankTalk(e *continuo.Entry) bool {
	return strings.IndexFunc(saidIn(e), isVisible) < 0
}

// maxSummaryRows bounds how far behind what could be shown a summary is looked for.
const maxSummaryRows = 1000

// readSeen reads on before the cursor, for as long as the view can show what it finds.
func (r *roleBuild) readSeen() error {
	from := min(r.role.Cursor, r.end)
	if from <= r.role.Since || len(r.words.results) == 0 && r.enough(from) {
		return nil
	}
	for entry, err := range r.source.Backward(from) {
		if err != nil {
			return err
		}
		r.rowsRead++
		if entry.Seq <= r.role.Since || len(r.words.results) == 0 && r.enough(entry.Seq) {
			break
		}
		r.top = entry.Seq
		r.take(&entry)
	}
	return nil
}

// enough reports whether nothing from seq down can be shown in its place.
func (r *roleBuild) enough(seq int64) bool {
	switch r.kind {
	case RoleDelta:
		return true
	case RoleMemory:
		return seq <= r.noted()
	case RoleWindow:
		return len(r.talk) > r.role.Newest || r.full()
	case RoleSummary:
		if r.summary == nil {
			return r.full() && r.rowsRead > r.rowsFull+maxSummaryRows
		}
		return seq <= r.summary.Summary.Through && len(r.talk) >= r.role.Newest || r.full()
	}
	return r.full()
}

// noted is the seq through which the role's notes stand for what it was shown.
func (r *roleBuild) noted() int64 { return min(r.notes.Summary.Through, r.role.Cursor) }

// full reports whether what was seen before fills the limits by itself.
func (r *roleBuild) full() bool {
	for ; r.sized < len(r.talk); r.sized++ {
		if t := r.talk[r.sized]; !t.isNew {
			r.seenSize = r.seenSize.Add(r.sizeOf(t))
		}
	}
	if r.limits().exceeded(r.seenSize) == "" {
		return false
	}
	if r.rowsFull == 0 {
		r.rowsFull = r.rowsRead
	}
	return true
}

// findRequests finds the first and the newest message of the user behind the newest reset, wherever they stand.
func (r *roleBuild) findRequests() error {
	for _, t := range r.talk {
		if t.user {
			r.newest = t
			if r.original == nil {
				r.original = t
			}
		}
	}
	if r.top <= r.role.Since+1 {
		return nil
	}
	older, err := r.source.LatestUser(min(r.top-1, r.end))
	switch {
	case errors.Is(err, continuo.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	r.rowsRead++
	if older.Seq <= r.role.Since {
		return nil
	}
	if r.newest == nil {
		r.newest = newTalk(&unit{entries: []*continuo.Entry{&older}}, r.role)
	}
	for entry, err := range r.source.Forward(r.role.Since + 1) {
		if err != nil {
			return err
		}
		r.rowsRead++
		if entry.Seq > older.Seq {
			break
		}
		if entry.Role != continuo.User || entry.Hidden {
			continue
		}
		if t := newTalk(&unit{entries: []*continuo.Entry{&entry}}, r.role); t != nil {
			r.original = t
			break
		}
	}
	if r.original != nil && r.newest != nil && r.original.seq() == r.newest.seq() {
		r.original = r.newest
	}
	return nil
}
