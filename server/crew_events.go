package server

import (
	"net/http"
	"strconv"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
)

// sendCrewMessage sends a message to a crew, and answers with its state or its events.
func (s *server) sendCrewMessage(w http.ResponseWriter, r *http.Request, in api.CrewMessage) error {
	status, err := s.api.SendCrewMessage(r.Context(), scopeOf(r), in)
	if err != nil {
		return err
	}
	if wantsStream(r, nil) {
		session := engine.CrewSession{Scope: scopeOf(r), Crew: in.Crew, SessionID: in.SessionID}
		return s.streamCrew(w, r, &crewListener{FollowedCrew: api.FollowedCrew{Session: session, ConversationID: status.ConversationID, Seq: status.FirstSeq - 1}})
	}
	return writeJSON(w, http.StatusAccepted, status)
}

// crewEvents streams what a crew does in a session, from the start of its newest cycle or after the last entry that the
// client has seen.
func (s *server) crewEvents(w http.ResponseWriter, r *http.Request, in api.CrewEvents) error {
	followed, err := s.api.FollowCrew(r.Context(), scopeOf(r), in)
	if err != nil {
		return err
	}
	return s.streamCrew(w, r, &crewListener{FollowedCrew: followed, ended: in.Ended()})
}

// crewListener is a client that follows a crew.
type crewListener struct {
	api.FollowedCrew
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
		status, err := s.engine.Crews.Status(r.Context(), l.Session)
		if err != nil {
			return s.abortStream(w, r, out, err)
		}
		idle := !isActive(status.State) && status.TurnID == "" && status.LastSeq <= l.Seq
		if idle && out == nil && l.ended {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		if out == nil {
			out = newEventStream(w, s.options.KeepAlive)
			out.sendHeader()
		}
		if idle {
			out.send(strconv.FormatInt(l.Seq, 10)+api.EndSuffix, "end", status)
			return nil
		}
		if err := s.streamCycle(r, out, l); err != nil {
			return s.abortStream(w, r, out, err)
		}
		if out.disconnected() {
			return nil // the crew continues without a listener
		}
	}
}

// streamCycle sends the remaining events of the listener's cycle, until it ends or the next one begins.
func (s *server) streamCycle(r *http.Request, out *eventStream, l *crewListener) (err error) {
	if l.run, err = s.engine.Crews.CycleAt(r.Context(), l.Session, l.ConversationID, l.Seq+1); err != nil {
		return err
	}
	for progress, err := range s.engine.Crews.Follow(r.Context(), l.run, l.Seq) {
		if err != nil {
			return err
		}
		if l.isNext(progress.Entry) {
			return nil
		}
		if l.send(out, progress); out.disconnected() {
			return nil
		}
	}
	return nil
}

// isNext reports whether an entry begins the cycle after the listener's.
func (l *crewListener) isNext(entry *continuo.Entry) bool {
	return entry != nil && entry.RunEvent != nil && entry.RunEvent.Kind == continuo.RunBegan && entry.WorkflowID == l.run.WorkflowID && entry.RunID != l.run.ID
}

// send sends one step of a cycle. Only entries have ids: live events between them are not repeated after a reconnect.
func (l *crewListener) send(out *eventStream, progress engine.CrewProgress) {
	if progress.Entry != nil {
		l.Seq = progress.Entry.Seq
		out.sendAs(l.Seq, "entry", progress.Entry)
	}
	if progress.Status != nil {
		out.sendAs(0, "status", progress.Status)
	}
	if progress.Turn != nil {
		l.sendTurnEvent(out, *progress.Turn, progress.Role)
	}
}

// sendTurnEvent sends a live event of a role's turn in the form of the turn's own stream, with the role for its text, and
// without an id. A client that joins in the middle of a turn first receives which turn it is.
func (l *crewListener) sendTurnEvent(out *eventStream, event turn.Event, role string) {
	if event.TurnID != l.turn {
		l.turn = event.TurnID
		ids := api.ChatIDs{SessionID: l.sessionID(), ConversationID: l.ConversationID, TurnID: event.TurnID}
		out.sendAs(0, "turn", api.CrewTurnEvent{ChatIDs: ids, Role: role})
	}
	switch event.Kind {
	case turn.Started: // already sent
	case turn.TextDelta:
		out.sendAs(0, "delta", api.CrewTextEvent{Role: role, Text: event.Text})
	case turn.ReasoningDelta:
		if event.Text != "" {
			out.sendAs(0, "reasoning", api.CrewTextEvent{Role: role, Text: event.Text})
		}
	default:
		event.ID = 0
		out.sendTurnEvent(event, &progress{})
	}
}

// sessionID is the client's name for the conversation.
func (l *crewListener) sessionID() string {
	if l.Session.SessionID != "" {
		return l.Session.SessionID
	}
	return continuo.CrewWorkflow(l.Session.Crew)
}
