package turn

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Plan returns the plan of a request to the runner's model for a source at seq at, and the request's envelope with the
// tools that it offers. The source may be a log with further entries that are not appended yet. The plan's messages
// have placeholders for attachments; see [Attach].
func (r *Runner) Plan(ctx context.Context, conversation continuo.Conversation, source window.Source, at int64) (*window.Plan, continuo.Envelope, error) {
	if err := r.check(); err != nil {
		return nil, continuo.Envelope{}, err
	}
	return r.toolOffer(ctx).plan(conversation, source, at, r.View, r.envelope(r.own(), r.Speaker.Dialect()), r.Model.Info())
}
