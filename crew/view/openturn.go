package view

import continuo "github.com/continuo-log/continuo"

// openTurn searches for the role's open turn while the log is read backward. Whether one is open is decided by the
// entry that began or ended the role's newest turn, or when so much was read that none can be open.
type openTurn struct {
	role     *Role
	entries  []*continuo.Entry // read so far, newest first
	answered map[string]bool   // turns that have an answer
	newest   newestTurn

	decided bool
	cue     *continuo.Entry // the first entry of the open turn; nil for none
}

func newOpenTurn(role *Role) *openTurn {
	return &openTurn{role: role, answered: map[string]bool{}}
}

// take takes the next older entry.
func (o *openTurn) take(e *continuo.Entry) {
	o.entries = append(o.entries, e)
	o.decided = o.decides(e)
}

// decides reports whether an entry, the oldest so far, decides whether a turn of the role is open.
func (o *openTurn) decides(e *continuo.Entry) bool {
	if e.Role == continuo.Assistant && !e.Hidden && !e.HasCalls() && e.Error == nil {
		o.answered[e.TurnID] = true
	}
	_, crew := continuo.CrewOf(e.WorkflowID)
	if e.RunEvent != nil && e.NodeID == o.role.Name && (crew || e.WorkflowID == "") && o.role.isOf(e) {
		switch e.RunEvent.Kind {
		case continuo.RunNodeFinished, continuo.CrewRoleFailed:
			return true
		case continuo.RunNodeBegan:
			if !o.answered[e.TurnID] {
				o.cue = e
			}
			return true
		}
	}
	o.newest.take(e)
	return e.Seq <= o.role.Cursor || 2*int64(len(o.entries)) > maxBacklog && o.newest.isRead()
}

// newestTurn follows the newest turn of a log back to its beginning: it may be the role's own, which must be read
// whole, including entries of others within it.
type newestTurn struct {
	id     string // "" before one is found
	begun  bool   // its first entry was read
	others int64  // entries of others since the turn's oldest entry so far
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

// isRead reports whether no older entry of the turn is expected: its beginning was read, or more entries of others
// than one turn can contain.
func (n *newestTurn) isRead() bool { return n.begun || 2*n.others > maxBacklog }
