package view

import continuo "github.com/continuo-log/continuo"

// openTurn looks for the role's open turn while a log is read backward: whether one is open is known when an entry was
// read that began or ended the role's newest turn, or when so much was read that none can be.
type openTurn struct {
	role     *Role
	entries  []*continuo.Entry // taken, newest first
	answered map[string]bool   // turns that have an answer
	newest   newestTurn

	decided bool
	cue     *continuo.Entry // that began the open turn; nil for none
}

func newOpenTurn(role *Role) *openTurn {
	return &openTurn{role: role, answered: map[string]bool{}}
}

// take takes the next older entry.
func (o *openTurn) take(e *continuo.Entry) {
	o.entries = append(o.entries, e)
	o.decided = o.decides(e)
}

// decides reports whether an entry, the oldest that was read, shows whether a turn of the role is open.
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
