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
	out := newEventStream(w, s.options.KeepAlive)
	defer out.close()
	for turn, err := range s.engine.Ledger.Follow(ctx, query) {
		switch {
		case err != nil:
			return s.abortStream(w, r, out, err)
		case turn.TurnID == "": // a client that has the header misses nothing
			out.sendHeader()
			begun()
		default:
			out.sendAs(turn.Position, "turn", api.FinishedTurnOf(turn))
		}
		if out.disconnected() {
			return nil
		}
	}
	return s.abortStream(w, r, out, context.Cause(ctx))
}
