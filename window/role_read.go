package window

import (
	"errors"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// maxBacklog is how many entries behind a role's cursor are read for one turn: more than fit into most views, and few
// enough to be held in memory. What comes after them waits for the next turns.
var maxBacklog int64 = 2048

// read reads what the view needs of the log: what is new, and of the rest as far as the kind of view goes.
func (r *roleBuild) read() error {
	unseen, err := r.unseen()
	if err != nil {
		return err
	}
	r.findAsk(unseen)
	r.takeTurn(unseen)
	if unseen, err = r.backlog(unseen); err != nil {
		return err
	}
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

// unseen reads what stands behind the role's cursor, newest first: all of it, or the newest part where that is much.
func (r *roleBuild) unseen() (entries []*continuo.Entry, err error) {
	r.top = r.in.At + 1
	if r.role.Kind == RoleSummary && !r.role.Whole { // a summary near the end may stand for most of it
		return r.between(r.seen(), r.in.At)
	}
	newest := newestTurn{}
	return r.betweenUntil(r.seen(), r.in.At, func(e *continuo.Entry, read []*continuo.Entry) bool {
		enough := int64(2*len(read)) > maxBacklog && newest.isRead()
		newest.take(e)
		return enough
	})
}

// newestTurn follows the newest turn of a log back to where it began: it may be the role's own, which must be read whole,
// with whatever others have said within it.
type newestTurn struct {
	id     string // "" before one was found
	begun  bool   // what it began with was read
	others int64  // entries of others since its oldest that was read
}

// take takes the next older entry.
func (n *newestTurn) take(e *continuo.Entry) {
	if n.id == "" {
		n.id = e.TurnID
	}
	if n.others++; n.id != "" && e.TurnID == n.id {
		n.others = 0
		n.begun = n.begun || e.RunEvent != nil && e.RunEvent.Kind == continuo.RunNodeBegan
	}
}

// isRead reports whether nothing of the turn is expected further up: its beginning was read, or more of others than are
// said within one turn.
func (n *newestTurn) isRead() bool { return n.begun || 2*n.others > maxBacklog }

// seen is the seq through which nothing is new to the role.
func (r *roleBuild) seen() int64 { return max(r.role.Cursor, r.role.Since) }

// backlog is what is read of the talk that is new: all of it, or, where that is much, the oldest of it that says
// anything. The talk ends with that then. What is decided by depends on where the role's turn began alone, so that it is
// the same for all requests of a turn.
func (r *roleBuild) backlog(unseen []*continuo.Entry) ([]*continuo.Entry, error) {
	seen := r.seen()
	switch {
	case r.top <= seen+1 || len(unseen) == 0:
		return unseen, nil
	case r.end-seen <= maxBacklog:
		older, err := r.between(seen, r.top-1)
		return append(unseen, older...), err
	}
	for r.later = r.end; ; seen = r.end {
		end, err := r.groupEnd(min(seen+maxBacklog, r.later), r.later)
		if err != nil {
			return nil, err
		}
		if r.end = end; r.end == r.later {
			r.later = 0
		}
		entries, err := r.between(seen, r.end)
		if err != nil || r.later == 0 || slices.ContainsFunc(entries, r.mayBeNews) {
			return entries, err
		}
	}
}

// groupEnd moves a seq behind the results that follow it, up to last.
func (r *roleBuild) groupEnd(seq, last int64) (int64, error) {
	for entry, err := range r.source.Forward(seq + 1) {
		if err != nil {
			return 0, err
		}
		r.rowsRead++
		if entry.Role != continuo.Tool || entry.Seq > last {
			break
		}
		seq = entry.Seq
	}
	return seq, nil
}

// mayBeNews reports whether an entry may be the first of something that is new to the role.
func (r *roleBuild) mayBeNews(e *continuo.Entry) bool {
	return !e.Hidden && e.Role != continuo.Tool && excludeTalk(e) == "" && !r.role.isOwn(e)
}

// between reads the entries behind a seq up to another, newest first.
func (r *roleBuild) between(behind, through int64) ([]*continuo.Entry, error) {
	return r.betweenUntil(behind, through, func(*continuo.Entry, []*continuo.Entry) bool { return false })
}

// betweenUntil is between, up to the first entry that is enough behind those that were read.
func (r *roleBuild) betweenUntil(behind, through int64, enough func(e *continuo.Entry, read []*continuo.Entry) bool) (entries []*continuo.Entry, err error) {
	if through <= behind {
		return nil, nil
	}
	for entry, err := range r.source.Backward(through) {
		if err != nil {
			return nil, err
		}
		r.rowsRead++
		if entry.Seq <= behind || enough(&entry, entries) {
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
	if r.role.Kind != RoleMemory || seq <= r.role.Since || seq > max(r.end, r.later) {
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
	if err := r.findOlder(); err != nil {
		return err
	}
	if err := r.findLater(); err != nil {
		return err
	}
	if r.original != nil && r.newest != nil && r.original.seq() == r.newest.seq() {
		r.original = r.newest
	}
	return nil
}

// findOlder looks for requests before what was read.
func (r *roleBuild) findOlder() error {
	if r.top <= r.role.Since+1 {
		return nil
	}
	seq, newest, err := r.latestUser(min(r.top-1, r.end))
	if err != nil || seq <= r.role.Since {
		return err
	}
	if r.newest == nil {
		r.newest = newest
	}
	first, err := r.firstUser(r.role.Since+1, seq)
	if first != nil {
		r.original = first
	}
	return err
}

// findLater looks for requests among what waits behind what was read.
func (r *roleBuild) findLater() error {
	if r.later == 0 {
		return nil
	}
	seq, newest, err := r.latestUser(r.later)
	if err != nil || seq <= r.end {
		return err
	}
	if newest != nil {
		newest.order = fresh
		r.newest = newest
	}
	if r.original == nil {
		r.original, err = r.firstUser(r.end+1, seq)
	}
	return err
}

// latestUser reads the newest message of the user at a seq or before it: 0 for none, and nil where it says nothing.
func (r *roleBuild) latestUser(at int64) (seq int64, said *talk, err error) {
	entry, err := r.source.LatestUser(at)
	if errors.Is(err, continuo.ErrNotFound) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	r.rowsRead++
	return entry.Seq, newTalk(&unit{entries: []*continuo.Entry{&entry}}, r.role), nil
}

// firstUser reads the first message of the user from a seq up to another; nil for none.
func (r *roleBuild) firstUser(from, through int64) (*talk, error) {
	for entry, err := range r.source.Forward(from) {
		if err != nil {
			return nil, err
		}
		r.rowsRead++
		if entry.Seq > through {
			break
		}
		if entry.Role != continuo.User || entry.Hidden {
			continue
		}
		if t := newTalk(&unit{entries: []*continuo.Entry{&entry}}, r.role); t != nil {
			return t, nil
		}
	}
	return nil, nil
}
