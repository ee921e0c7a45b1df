package server

import (
	"cmp"
	"net/http"
	"strconv"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
)

// startRun begins a run, and answers with its state or its events.
func (s *server) startRun(w http.ResponseWriter, r *http.Request, in api.RunRequest) error {
	status, err := s.api.StartRun(r.Context(), scopeOf(r), in)
	if err != nil {
		return err
	}
	if wantsStream(r, in.Stream) {
		return s.streamRun(w, r, &runListener{run: status.Run, session: in.SessionID, seq: status.FirstSeq - 1})
	}
	return writeJSON(w, http.StatusCreated, status)
}

// runEvents streams a run's events, from its first entry or after the last one that the client has seen.
func (s *server) runEvents(w http.ResponseWriter, r *http.Request, in api.RunEvents) error {
	run, err := s.api.FollowRun(r.Context(), scopeOf(r), in)
	if err != nil {
		return err
	}
	return s.streamRun(w, r, &runListener{run: run, seq: in.Seq, ended: in.Ended()})
}

// runListener is a client that follows a run.
type runListener struct {
	run     continuo.Run
	session string // the client's name for the conversation; "" for its id
	seq     int64  // of the newest entry that the client has received
	// ended says that the client has received, after that entry, the event with the run's end.
	ended bool

	turn   string            // the turn whose live events are sent
	status *engine.RunStatus // the newest that was sent
}

// streamRun sends a run's entries and the live events between them, until the run pauses or ends. An error before the
// first event is a plain HTTP error; a stream that has begun always ends with one end or one error. A client that has
// received the end gets 204, which stops its reconnecting, as long as nothing followed.
func (s *server) streamRun(w http.ResponseWriter, r *http.Request, l *runListener) error {
	var out *eventStream
	defer func() {
		if out != nil {
			out.close()
		}
	}()
	if isActive(l.run.State) { // it may be silent for long
		out = newEventStream(w, s.options.KeepAlive)
		out.sendHeader()
	}
	for progress, err := range s.engine.Runs.Follow(r.Context(), l.run, l.seq) {
		if err != nil {
			return s.abortStream(w, r, out, err)
		}
		if out == nil {
			out = newEventStream(w, s.options.KeepAlive)
		}
		if l.send(out, progress); out.disconnected() {
			return nil // the run continues without a listener
		}
	}
	if out == nil && l.ended {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if l.status == nil {
		status, err := s.engine.Runs.Get(r.Context(), scopeOf(r), l.run.ID)
		if err != nil {
			return s.abortStream(w, r, out, err)
		}
		l.status = status
	}
	if out == nil {
		out = newEventStream(w, s.options.KeepAlive)
	}
	out.send(strconv.FormatInt(l.seq, 10)+api.EndSuffix, "end", l.status)
	return nil
}

// abortStream reports that a stream cannot continue, which says nothing about the run.
func (s *server) abortStream(w http.ResponseWriter, r *http.Request, out *eventStream, err error) error {
	switch {
	case out == nil:
		return err
	case r.Context().Err() != nil:
		return nil // the client has disconnected
	}
	p := api.ProblemOf(err)
	s.logCause(w, r, p)
	out.sendAs(0, "error", p)
	return nil
}

// isActive reports whether a run continues without being resumed.
func isActive(state continuo.RunState) bool {
	return state == continuo.RunRunning || state == continuo.RunWaiting
}

// send sends one step of a run. Only entries have ids: live events between them are not repeated after a reconnect.
func (l *runListener) send(out *eventStream, progress engine.RunProgress) {
	if progress.Entry != nil {
		l.seq = progress.Entry.Seq
		out.sendAs(l.seq, "entry", progress.Entry)
	}
	if progress.Status != nil {
		l.status = progress.Status
		out.sendAs(0, "status", l.status)
	}
	if progress.Turn != nil {
		l.sendTurnEvent(out, *progress.Turn, progress.ConversationID)
	}
}

// sendTurnEvent sends a live event in the form of the turn's own stream, but without an id. A client that joins in the
// middle of a turn first receives which turn it is.
func (l *runListener) sendTurnEvent(out *eventStream, event turn.Event, conversationID string) {
	ids := api.ChatIDs{SessionID: conversationID, ConversationID: conversationID, TurnID: event.TurnID}
	if conversationID == l.run.ConversationID {
		ids.SessionID = cmp.Or(l.session, conversationID)
	}
	if event.TurnID != l.turn {
		l.turn = event.TurnID
		out.sendAs(0, "turn", ids)
	}
	if event.Kind == turn.Started {
		return // already sent
	}
	event.ID = 0
	out.sendTurnEvent(event, &progress{ids: ids})
}
