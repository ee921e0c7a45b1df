package server

import (
	"context"
	"net/http"

	"github.com/continuo-log/continuo/api"
)

// feedEvents streams the turns of the project that end, until the client disconnects.
func (s *server) feedEvents(w http.ResponseWriter, r *http.Request, in api.FeedEvents) error {
	ctx, begun, stop := s.whileAllowed(r)
	defer stop()
	query, err := s.api.FeedQuery(ctx, scopeOf(r), in.FeedCursor)
	if err != nil {
		return err
	}
	var out *eventStream // of the first turns, or of none: a cursor may be refused until then
	defer func() {
		if out != nil {
			out.close()
		}
	}()
	for turn, err := range s.api.FollowFeed(ctx, query) {
		if err != nil {
			return s.abortStream(w, r, out, err)
		}
		if out == nil {
			out = newEventStream(w, s.options.KeepAlive)
		}
		if turn.TurnID == "" { // a client that has the header misses nothing
			out.sendHeader()
			begun()
		} else {
			out.sendAs(turn.Position, "turn", api.FinishedTurnOf(turn))
		}
		if out.disconnected() {
			return nil
		}
	}
	return s.abortStream(w, r, out, context.Cause(ctx))
}
