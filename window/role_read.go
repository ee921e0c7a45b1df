package window

import (
	"errors"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// maxBacklog bounds how many entries are read to find where the role's open turn began, and how many are read only to
// count the messages in them.
var maxBacklog int64 = 2048

// roleLog is what a role's view needs of the log: the planner decides by it alone.
type roleLog struct {
	rows int64
	// ask is the entry that the role's open turn began with; nil where no turn is open.
	ask *continuo.Entry
	end int64 // the last seq before the ask, or of the log
	top int64 // everything from here to end was read
	// messages are those from top to end, oldest first, without open, a group at the end whose calls have no results yet.
	messages []*roleMessage
	held     *roleMessage
	turn     []*unit // the role's own open turn
	excluded []exclusion

	newest, original *roleMessage // the user's newest and first message since the reset; nil for none

	// shown is the seq through which the open turn's first request has shown everything; 0 for none.
	shown int64
	// above are the messages before top that were counted, newest first. Uncounted says that there are more.
	above     []countedMessage
	uncounted bool

	previous *continuo.Window  // of the newest request with an equal view; nil for none, or for a view without epochs
	standIns []*continuo.Entry // the summaries or notes that may be shown, newest first

	sized int             // how many messages are in size
	size  continuo.Size   // of the messages
	rest  map[string]bool // roles that were asked again, on the way back to where they had failed
}

// countedMessage is a message that was read only to be counted.
type countedMessage struct {
	seq   int64
	isNew bool
}

// roleReader reads the log backward, once, for as long as the view can show what it finds.
type roleReader struct {
	*roleLog
	source  Source
	planner *rolePlanner
	role    *RoleView

	undecided []*continuo.Entry // newest first, while it is not known whether the role's turn is open
	newestID  newestTurn
	answered  map[string]bool // by turn
	units     assembler       // of messages
	fullAt    int64           // how many rows were read when the limits were full; 0 while they are not
}

func readRole(source Source, p *rolePlanner) (*roleLog, error) {
	r := &roleReader{
		roleLog: &roleLog{top: p.base.in.At + 1, end: p.base.in.At, rest: map[string]bool{}},
		source:  source, planner: p, role: p.role, answered: map[string]bool{}, units: assembler{view: p.base.view},
	}
	if err := r.findNotes(); err != nil {
		return nil, err
	}
	if err := r.read(); err != nil {
		return nil, err
	}
	r.units.finish()
	r.excluded = append(r.excluded, r.units.excluded...)
	slices.Reverse(r.messages)
	r.hold()
	if err := r.count(); err != nil {
		return nil, err
	}
	if err := r.findShown(); err != nil {
		return nil, err
	}
	return r.roleLog, r.findRequests()
}

// read reads the role's open turn, and the messages before it.
func (r *roleReader) read() error {
	decided := false
	for entry, err := range r.source.Backward(r.planner.base.in.At) {
		if err != nil {
			return err
		}
		r.rows++
		if entry.Seq <= r.role.Since {
			break
		}
		if !decided {
			r.undecided = append(r.undecided, &entry)
			if decided = r.decides(&entry); decided {
				r.decide()
			}
		} else {
			r.take(&entry)
		}
		if decided && len(r.units.results) == 0 && r.enough(entry.Seq-1) {
			break
		}
	}
	if !decided {
		r.decide()
	}
	return nil
}

// decides reports whether an entry, the oldest that was read, shows whether a turn of the role is open.
func (r *roleReader) decides(e *continuo.Entry) bool {
	if e.Role == continuo.Assistant && !e.Hidden && !e.HasCalls() && e.Error == nil {
		r.answered[e.TurnID] = true
	}
	_, crew := continuo.CrewOf(e.WorkflowID)
	if e.RunEvent != nil && e.NodeID == r.role.Name && (crew || e.WorkflowID == "") && r.role.isOf(e) {
		switch e.RunEvent.Kind {
		case continuo.RunNodeFinished, continuo.CrewRoleFailed:
			return true
		case continuo.RunNodeBegan:
			if !r.answered[e.TurnID] {
				r.ask, r.end = e, e.Seq-1
			}
			return true
		}
	}
	r.newestID.take(e)
	return e.Seq <= r.role.Cursor || 2*int64(len(r.undecided)) > maxBacklog && r.newestID.isRead()
}

// newestTurn follows the newest turn of a log back to where it began: it may be the role's own, which must be read whole,
// with whatever others have said within it.
type newestTurn struct {
	id     string // "" before one was found
	begun  bool   // its first entry was read
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

// decide sorts what was read by then into the role's open turn and messages.
func (r *roleReader) decide() {
	own := assembler{view: r.planner.base.view}
	for _, e := range r.undecided {
		switch {
		case r.ask == nil || e.Seq <= r.end:
			r.take(e)
		case e == r.ask:
			r.excluded = append(r.excluded, exclusion{e, reasonUIOnly})
		case e.TurnID == "" || e.TurnID != r.ask.TurnID:
			r.excluded = append(r.excluded, exclusion{e, reasonAfterAsk})
		default:
			r.learn(e)
			if e.Round != nil && e.Round.ViewHash == r.planner.base.hash {
				r.shown = max(r.shown, e.Round.Cursor)
			}
			if u := own.add(e); u != nil {
				r.turn = append(r.turn, u)
			}
		}
		if e.Seq > r.end {
			r.top = e.Seq
		}
	}
	own.finish()
	r.excluded = append(r.excluded, own.excluded...)
	slices.Reverse(r.turn)
	r.undecided = nil
}

// learn takes from an entry what an earlier request recorded on it.
func (r *roleReader) learn(e *continuo.Entry) {
	base := r.planner.base
	known := base.previous
	base.learn(e)
	if known != nil || base.previous == nil {
		return
	}
	if w := base.previous; !r.role.epochs() || r.role.Whole || w.Start <= r.role.Since || len(w.Pins) > 0 || w.Left < -1 {
		base.previous = nil
		return
	}
	r.previous = base.previous
}

// take takes the next older entry before the open turn.
func (r *roleReader) take(e *continuo.Entry) {
	r.top = e.Seq
	r.learn(e)
	if r.standsIn(e) {
		r.standIns = append(r.standIns, e)
	}
	if m := r.message(e, true); m != nil {
		if m.user && r.newest == nil {
			r.newest = m
		}
		if m.user {
			r.original = m
		}
		r.messages = append(r.messages, m)
	}
}

// standsIn reports whether an entry may be shown in the place of what the role is not shown: its notes, a summary, or a
// catch-up, by the kind of its view.
func (r *roleReader) standsIn(e *continuo.Entry) bool {
	if e.Summary == nil || e.Summary.From <= r.role.Since {
		return false
	}
	switch r.role.Kind {
	case RoleMemory:
		return IsSummary(e, r.role.Name) && e.Seq <= r.role.Notes
	case RoleSummary:
		return IsSummary(e, "")
	}
	return IsCatchUp(e, r.role.Name)
}

// message reads the next older entry as a message; nil where it is none, or is not whole yet. Only what is recorded
// appears among the plan's items.
func (r *roleReader) message(e *continuo.Entry, record bool) *roleMessage {
	exclude := func(reason string, entries ...*continuo.Entry) *roleMessage {
		for _, entry := range entries {
			if record {
				r.excluded = append(r.excluded, exclusion{entry, reason})
			}
		}
		return nil
	}
	if event := e.RunEvent; event != nil && event.Kind == continuo.RunNodeBegan {
		r.rest[e.NodeID] = event.Attempt > 1
	}
	if reason := excludeFromRole(e); reason != "" {
		return exclude(reason, e)
	}
	u := r.units.add(e)
	if u == nil {
		return nil
	}
	m := newRoleMessage(u, r.role)
	switch {
	case m == nil, e.Error != nil && !m.own && r.rest[e.NodeID]: // the words of the next attempt stand for it
		return exclude(reasonFailed, u.entries...)
	case m.own && r.role.Remembers && !r.role.Whole:
		return exclude(reasonOwnWords, u.entries...)
	}
	return m
}

// excludeFromRole returns why an entry is never shown to a role, or "". What it leaves to the assembler is no message either.
func excludeFromRole(e *continuo.Entry) string {
	switch {
	case e.IsPlaceholder():
		return reasonPlaceholder
	case e.Hidden || e.Role == continuo.Tool || e.HasCalls():
		return ""
	case e.Role == continuo.System:
		return reasonSystem
	case e.Error == nil && (e.Role == continuo.User || e.Reasoning == nil) && e.Content.IsBlank():
		return reasonEmpty
	case e.Error == nil && e.Content.IsBlank():
		return reasonThinking
	}
	return ""
}

// maxSummaryRows bounds how far behind what could be shown a summary is looked for.
const maxSummaryRows = 1000

// enough reports whether nothing from seq down can be shown in its place.
func (r *roleReader) enough(seq int64) bool {
	if r.full() {
		if r.fullAt == 0 {
			r.fullAt = r.rows
		}
		return r.role.Kind != RoleSummary || len(r.standIns) > 0 || r.rows > r.fullAt+maxSummaryRows
	}
	switch kind := r.role.Kind; {
	case seq > r.role.Cursor:
		return false
	case r.role.Whole:
		return false
	case kind == RoleDelta:
		return true
	case r.previous != nil:
		return seq < r.previous.Start
	case kind == RoleMemory && len(r.standIns) > 0:
		return seq <= r.standIns[0].Summary.Through
	case kind == RoleMemory:
		return r.role.Remembers
	case kind == RoleWindow && r.role.Newest == 0:
		return true
	case kind == RoleSummary && len(r.standIns) > 0:
		return seq <= r.standIns[0].Summary.Through && len(r.messages) >= r.role.Newest
	}
	return false
}

// full reports whether the messages are more than the view can show.
func (r *roleReader) full() bool {
	for ; r.sized < len(r.messages); r.sized++ {
		r.size = r.size.Add(r.planner.measure(r.messages[r.sized], r.messages[r.sized] == r.newest))
	}
	return r.planner.most > 0 && len(r.messages) > r.planner.most || r.planner.base.limits().exceeded(r.size) != ""
}

// hold takes a group out of the messages that stands last and whose calls have no results yet: it waits.
func (r *roleReader) hold() {
	if n := len(r.messages); n > 0 && r.messages[n-1].isNew && len(r.messages[n-1].unit.missing) > 0 {
		r.held, r.messages = r.messages[n-1], r.messages[:n-1]
	}
}

// count reads on where the limits were full, to say how many messages are left out: back to where the window before began,
// for that one has counted what stands before it.
func (r *roleReader) count() error {
	from := r.role.Since
	switch {
	case r.onlyNew():
		from = max(from, r.role.Cursor)
	case r.previous != nil:
		from = min(r.previous.Start-1, max(r.role.Cursor, r.role.Since))
	}
	if r.top <= from+1 {
		return nil
	}
	rows := int64(0)
	for entry, err := range r.source.Backward(r.top - 1) {
		if err != nil {
			return err
		}
		r.rows++
		if rows++; entry.Seq <= from {
			return nil
		}
		if rows > maxBacklog {
			r.uncounted = true
			return nil
		}
		if m := r.message(&entry, false); m != nil {
			r.above = append(r.above, countedMessage{m.seq(), m.isNew})
		}
	}
	return nil
}

// onlyNew reports whether the view shows nothing that the role has seen.
func (r *roleReader) onlyNew() bool {
	var standIn *continuo.Entry
	if len(r.standIns) > 0 {
		standIn = r.standIns[0]
	}
	return r.planner.onlyNew(standIn)
}

// findNotes reads the role's notes.
func (r *roleReader) findNotes() error {
	if r.role.Kind != RoleMemory || r.role.Notes <= r.role.Since || r.role.Notes > r.planner.base.in.At {
		return nil
	}
	return r.findStandIn(r.role.Notes)
}

// findShown reads what the window before shows in the place of what it leaves out.
func (r *roleReader) findShown() error {
	if r.previous == nil || r.previous.Summary == 0 || r.standIn(r.previous.Summary) != nil {
		return nil
	}
	return r.findStandIn(r.previous.Summary)
}

// findStandIn reads the entry at a seq, if it may stand for others.
func (r *roleReader) findStandIn(seq int64) error {
	for entry, err := range r.source.Forward(seq) {
		if err != nil {
			return err
		}
		if r.rows++; entry.Seq == seq && entry.Seq <= r.planner.base.in.At && r.standsIn(&entry) {
			r.standIns = append(r.standIns, &entry)
		}
		break
	}
	return nil
}

// standIn returns what stands at a seq and may be shown for others; nil for nothing.
func (l *roleLog) standIn(seq int64) *continuo.Entry {
	for _, e := range l.standIns {
		if e.Seq == seq {
			return e
		}
	}
	return nil
}

// findRequests finds the first and the newest message of the user since the reset, wherever they stand.
func (r *roleReader) findRequests() error {
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
	switch {
	case first == nil:
	case r.newest != nil && first.seq() == r.newest.seq():
		r.original = r.newest
	default:
		r.original = first
	}
	return err
}

// latestUser reads the newest message of the user at a seq or before it: 0 for none, and nil where it says nothing.
func (r *roleReader) latestUser(at int64) (seq int64, said *roleMessage, err error) {
	entry, err := r.source.LatestUser(at)
	if errors.Is(err, continuo.ErrNotFound) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	r.rows++
	return entry.Seq, newRoleMessage(&unit{entries: []*continuo.Entry{&entry}}, r.role), nil
}

// firstUser reads the first message of the user from a seq up to another; nil for none.
func (r *roleReader) firstUser(from, through int64) (*roleMessage, error) {
	for entry, err := range r.source.Forward(from) {
		if err != nil {
			return nil, err
		}
		r.rows++
		if entry.Seq > through {
			break
		}
		if entry.Role != continuo.User || entry.Hidden {
			continue
		}
		if m := newRoleMessage(&unit{entries: []*continuo.Entry{&entry}}, r.role); m != nil {
			return m, nil
		}
	}
	return nil, nil
}
