package turn

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Plan decides what the runner's model would be shown of a source as it was at seq at. The source may be a log with
// entries behind it that are not appended yet. The envelope is that of the request, with the tools that it offers. The plan's
// messages have placeholders for attachments; see [Attach].
func (r *Runner) Plan(ctx context.Context, conversation continuo.Conversation, source window.Source, at int64) (*continuo.Plan, continuo.Envelope, error) {
	if err := r.check(); err != nil {
		return nil, continuo.Envelope{}, err
	}
	return r.offer(ctx).plan(conversation, source, at, r.View, r.envelope(r.own(), r.Speaker.Dialect()), r.Model.Info())
}
