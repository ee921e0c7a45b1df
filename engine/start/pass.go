package start

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/model"
)

// PassRequest is a client's request that is forwarded without being recorded.
type PassRequest struct {
	Project  string
	Upstream catalog.Upstream
	// Body is sent as it is, Forwarding is what the client's request adds to it.
	Body       []byte
	Forwarding *model.Forwarding
}

// Pass forwards a request, and calls write with the bytes of the answer as they come until it returns false. It counts as a
// turn of the project; no log has it. An answer that failed is a *model.Error.
func (ts *Turns) Pass(ctx context.Context, request PassRequest, write func(wire string) bool) error {
	if ts.life.IsClosed() {
		return lifecycle.ErrClosing
	}
	if err := ts.life.Room(ctx, request.Project); err != nil {
		return err
	}
	if err := ts.life.Admit(request.Project); err != nil {
		return err
	}
	defer ts.life.Dismiss(request.Project)
	ctx, cancel := ts.turnContext(ctx, false)
	defer cancel(nil)
	begin, usage := time.Now(), continuo.Usage{}
	for delta, err := range request.Upstream.Model.Stream(model.WithForwarding(ctx, request.Forwarding), request.Body) {
		if err != nil {
			ts.metrics.TurnEnded(string(model.AsError(err).Reason), time.Since(begin), usage)
			return model.AsError(err)
		}
		if delta.Usage != nil {
			usage = *delta.Usage
		}
		if delta.Wire != "" && !write(delta.Wire) {
			ts.metrics.TurnEnded(string(continuo.ReasonCancelled), time.Since(begin), usage)
			return nil
		}
	}
	ts.metrics.TurnEnded("finished", time.Since(begin), usage)
	return nil
}
