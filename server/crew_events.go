package server

import (
	"math"
	"net/http"
	"strconv"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
)

// crewEvents streams what a crew does in a session, from the start of its newest cycle or after the last entry that the
// client has seen.
func (s *server) crewEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "session_id", "after")
	if err != nil {
		return err
	}
	l := &crewListener{}
	if l.seq, l.ended, err = seen(r, q); err != nil {
		return err
	}
	session, conversation, err := s.inSession(r, q.text("session_id"))
	if err != nil {
		return err
	}
	if l.session, l.conversation = session, conversation.ID; l.seq == 0 {
		newest, err := s.cycleAt(r, session, conversation.ID, maxSeq)
		if err != nil {
			return err
		}
		l.seq = newest.FirstSeq - 1
	}
	return s.streamCrew(w, r, l)
}

// crewListener is a client that follows a crew.
type crewListener struct {
	session      engine.CrewSession
	conversation string // its id
	seq          int64  // of the newest entry that the client has received
	// ended says that the client has received, after that entry, the event that the crew is idle.
	ended bool

	run  continuo.Run // the cycle that it follows
	turn string       // the turn whose live events are sent
}

// streamCrew sends a crew's events until the crew is idle, cycle by cycle: a client that was disconnected for several
// cycles misses none. An error before the first event is a plain HTTP error; a stream that has begun always ends with
// one end or one error. A client that has received the end gets 204, which stops its reconnecting, as long as nothing
// followed.
func (s *server) streamCrew(w http.ResponseWriter, r *http.Request, l *crewListener) error {
	var out *eventStream
	defer func() {
		if out != nil {
			out.close()
		}
	}()
	for {
		status, err := s.engine.Crews.Status(r.Context(), l.session)
		if err != nil {
			return s.breakOff(w, r, out, err)
		}
		rests := !goesOn(status.State) && status.TurnID == "" && status.LastSeq <= l.seq
		if rests && out == nil && l.ended {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		if out == nil {
			out = newEventStream(w, s.options.KeepAlive)
			out.open()
		}
		if rests {
			out.send(strconv.FormatInt(l.seq, 10)+endSuffix, "end", status)
			return nil
		}
		if err := s.hearCycle(r, out, l); err != nil {
			return s.breakOff(w, r, out, err)
		}
		if out.gone() {
			return nil // the crew continues without a listener
		}
	}
}

// hearCycle sends the remaining events of the listener's cycle, until it ends or the next one begins.
func (s *server) hearCycle(r *http.Request, out *eventStream, l *crewListener) (err error) {
	if l.run, err = s.cycleAt(r, l.session, l.conversation, l.seq+1); err != nil {
		return err
	}
	for progress, err := range s.engine.Crews.Follow(r.Context(), l.run, l.seq) {
		if err != nil {
			return err
		}
		if l.isNext(progress.Entry) {
			return nil
		}
		if l.tell(out, progress); out.gone() {
			return nil
		}
	}
	return nil
}

// isNext reports whether an entry begins the cycle after the listener's.
func (l *crewListener) isNext(entry *continuo.Entry) bool {
	return entry != nil && entry.RunEvent != nil && entry.RunEvent.Kind == continuo.RunBegan && entry.WorkflowID == l.run.WorkflowID && entry.RunID != l.run.ID
}

// maxCycles bounds how many cycles are searched for the first one of a conversation.
const maxCycles = 10_000

// cycleAt finds the newest cycle of a crew in a conversation that had begun at a seq, or the first cycle where none
// had; it fails with ErrNotFound where the crew has never taken part.
func (s *server) cycleAt(r *http.Request, session engine.CrewSession, conversation string, seq int64) (found continuo.Run, err error) {
	query := continuo.RunQuery{
		ProjectID: session.Scope.ProjectID, ConversationID: conversation, WorkflowID: continuo.CrewWorkflow(session.Crew), BegunBy: max(seq, 1), Limit: 1,
	}
	cycles, err := s.engine.Runs.List(r.Context(), query)
	if err == nil && len(cycles) == 0 {
		query.BegunBy, query.Limit = math.MaxInt64, maxCycles
		cycles, err = s.engine.Runs.List(r.Context(), query)
	}
	if err != nil {
		return found, err
	}
	if len(cycles) == 0 {
		return found, continuo.ErrNotFound
	}
	return cycles[len(cycles)-1], nil
}

// The data of a crew's events that turns do not have.
type (
	crewTurnEvent struct {
		chatIDs
		Role string `json:"role"`
	}
	crewTextEvent struct {
		Role string `json:"role"`
		Text string `json:"text"`
	}
)

// tell sends one step of a cycle. Only entries have ids: live events between them are not repeated after a reconnect.
func (l *crewListener) tell(out *eventStream, progress engine.CrewProgress) {
	if progress.Entry != nil {
		l.seq = progress.Entry.Seq
		out.sendAs(l.seq, "entry", progress.Entry)
	}
	if progress.Status != nil {
		out.sendAs(0, "status", progress.Status)
	}
	if progress.Turn != nil {
		l.tellTurn(out, *progress.Turn, progress.Role)
	}
}

// tellTurn sends a live event of a role's turn in the form of the turn's own stream, with the role for its text, and
// without an id. A client that joins in the middle of a turn first receives which turn it is.
func (l *crewListener) tellTurn(out *eventStream, event turn.Event, role string) {
	if event.TurnID != l.turn {
		l.turn = event.TurnID
		ids := chatIDs{SessionID: l.sessionID(), ConversationID: l.conversation, TurnID: event.TurnID}
		out.sendAs(0, "turn", crewTurnEvent{ids, role})
	}
	switch event.Kind {
	case turn.Started: // already sent
	case turn.TextDelta:
		out.sendAs(0, "delta", crewTextEvent{role, event.Text})
	case turn.ReasoningDelta:
		if event.Text != "" {
			out.sendAs(0, "reasoning", crewTextEvent{role, event.Text})
		}
	default:
		event.ID = 0
		out.tell(event, &progress{})
	}
}

// sessionID is the client's name for the conversation.
func (l *crewListener) sessionID() string {
	if l.session.SessionID != "" {
		return l.session.SessionID
	}
	return continuo.CrewWorkflow(l.session.Crew)
}
