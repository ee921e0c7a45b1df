package start

import (
	"context"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/model"
)

// PassRequest is a client's request that is forwarded without being recorded in a log.
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
	deltas, end, err := ts.unrecorded(ctx, request)
	if err != nil {
		return err
	}
	defer end()
	begin := time.Now()
	for delta, err := range deltas {
		if err != nil {
			ts.metrics.TurnEnded(string(model.AsError(err).Reason), time.Since(begin))
			return model.AsError(err)
		}
		if delta.Wire != "" && !write(delta.Wire) {
			ts.metrics.TurnEnded(string(continuo.ReasonCancelled), time.Since(begin))
			return nil
		}
	}
	ts.metrics.TurnEnded("finished", time.Since(begin))
	return nil
}

// unrecorded admits a request that no log has, within the budgets of its payer, and returns its answer, which is charged when
// it has been read. The request counts as a turn of the project until end is called.
func (ts *Turns) unrecorded(ctx context.Context, request PassRequest) (answer iter.Seq2[model.Delta, error], end func(), err error) {
	if ts.life.IsClosed() {
		return nil, nil, lifecycle.ErrClosing
	}
	if err := ts.life.AwaitPlace(ctx, request.Project); err != nil {
		return nil, nil, err
	}
	if err := ts.life.Admit(request.Project); err != nil {
		return nil, nil, err
	}
	payer, _ := continuo.PayerOf(ctx)
	payer.ProjectID = request.Project
	release, err := ts.options.Requests.AdmitBody(ctx, payer, request.Upstream.Model.Info(), request.Body)
	if err != nil {
		ts.life.Dismiss(request.Project)
		return nil, nil, err
	}
	ctx, cancel := ts.turnContext(continuo.WithPayer(ctx, payer), false)
	end = func() {
		cancel(nil)
		release()
		ts.life.Dismiss(request.Project)
	}
	return ts.options.Requests.Admitted(request.Upstream.Model).Stream(model.WithForwarding(ctx, request.Forwarding), request.Body), end, nil
}
