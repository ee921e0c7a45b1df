package turn

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Plan decides what the runner's model would be shown of a source as it was at seq at. The source may be a log with
// entries behind it that are not appended yet. Its messages have placeholders for attachments.
func (r *Runner) Plan(ctx context.Context, source window.Source, at int64) (*continuo.Plan, error) {
	return window.Build(source, r.View, windowInput(at, r.envelope(r.own(), r.offered(ctx)), r.Model.Info()))
}
