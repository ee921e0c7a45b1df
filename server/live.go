package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/engine/conversations"
)

// conversationEvents streams what changes in a conversation, until the client disconnects.
func (s *server) conversationEvents(w http.ResponseWriter, r *http.Request, in api.ConversationEvents) error {
	conversation, after, err := s.api.FollowConversation(r.Context(), scopeOf(r), in)
	if err != nil {
		return err
	}
	ctx, begun, stop := s.whileAllowed(r)
	defer stop()
	out := newEventStream(w, s.options.KeepAlive)
	defer out.close()
	for change, err := range s.engine.Conversations.Follow(ctx, scopeOf(r), conversation.ID, after) {
		if err != nil {
			return s.abortStream(w, r, out, err)
		}
		if sendChange(out, conversation.ID, change); out.disconnected() {
			return nil
		}
		if change == (conversations.Change{}) {
			begun()
		}
	}
	return s.abortStream(w, r, out, context.Cause(ctx))
}

// listEvents streams the rows of the list of conversations that change, until the client disconnects.
func (s *server) listEvents(w http.ResponseWriter, r *http.Request, in api.ListEvents) error {
	ctx, begun, stop := s.whileAllowed(r)
	defer stop()
	changes, err := s.api.FollowList(ctx, scopeOf(r), in)
	if err != nil {
		return err
	}
	out := newEventStream(w, s.options.KeepAlive)
	defer out.close()
	out.sendHeader()
	begun()
	for change, err := range changes {
		switch {
		case err != nil:
			return s.abortStream(w, r, out, err)
		case change.Removed != nil:
			out.sendAs(0, "removed", change.Removed)
		default:
			out.send(change.Row.UpdatedAt.Format(time.RFC3339Nano), "conversation", change.Row)
		}
		if out.disconnected() {
			return nil
		}
	}
	return s.abortStream(w, r, out, context.Cause(ctx))
}

// sendChange sends one change. Only entries have ids: everything else is a state, which the client gets again when it
// reconnects.
func sendChange(out *eventStream, id string, change conversations.Change) {
	switch {
	case change == conversations.Change{}: // a client that has the header misses nothing
		out.sendHeader()
	case change.Entry != nil:
		out.sendAs(change.Entry.Seq, "entry", change.Entry)
	case change.Turn != nil:
		out.sendAs(0, "turn", api.PublicTurn(*change.Turn))
	case change.Conversation != nil:
		out.sendAs(0, "conversation", change.Conversation)
	case change.Revised:
		out.sendAs(0, "revised", api.RevisedEvent{ConversationID: id})
	}
}

// whileAllowed is a context for a stream without an end of its own. It ends with the request, when the program begins
// nothing more, and when the caller's key or session is no longer valid, which is checked at every keep-alive. The caller
// calls begun when the client has the header: the program's end does not end the context before, so that a client gets
// either a stream or an error. It calls stop at the end.
func (s *server) whileAllowed(r *http.Request) (ctx context.Context, begun, stop func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	undrain := func() bool { return true }
	begun = func() { undrain = context.AfterFunc(s.engine.Draining(), func() { cancel(durable.ErrClosing) }) }
	var checks sync.WaitGroup
	if callerOf(r).keyID != "" {
		checks.Go(func() { s.recheck(ctx, r, cancel) })
	}
	return ctx, begun, func() {
		undrain()
		cancel(nil)
		checks.Wait()
	}
}

// recheck ends a context when its request would be refused now. A store that does not answer proves nothing.
func (s *server) recheck(ctx context.Context, r *http.Request, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(s.options.KeepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		token, err := tokenOf(r.Header)
		if _, err = s.identify(r, token, err); err != nil && api.ProblemOf(err).Status == http.StatusUnauthorized {
			cancel(err)
			return
		}
	}
}
