package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Attach loads the attachments of a plan's messages into their positions, byte for byte, so that the plan renders as if
// they had been stored in their entries. It reads only the objects of shown parts, all of which are then in memory. An
// attachment that cannot be read is replaced by a text that says so and is listed in plan.Missing: a lost object
// removes one part from the conversation but does not fail the request. Attach fails only when ctx is done.
func Attach(ctx context.Context, log *continuo.Log, plan *window.Plan) error {
	return attach(ctx, log, plan, nil)
}

// attach is Attach for a replayed request: without names the attachments that the original request left out.
func attach(ctx context.Context, log *continuo.Log, plan *window.Plan, without []continuo.MissingPart) error {
	shown := shownAttachments(plan)
	load(ctx, log, shown, without)
	if err := ctx.Err(); err != nil && len(shown) > 0 {
		return fmt.Errorf("read the attachments of conversation %s: %w", shown[0].entry.ConversationID, err)
	}
	for _, a := range shown {
		a.put()
		if a.missing != nil {
			plan.Missing = append(plan.Missing, *a.missing)
		}
	}
	return nil
}

// attached is an attachment that a message shows.
type attached struct {
	continuo.Attachment
	message *window.Message
	entry   *continuo.Entry       // with the placeholder
	part    continuo.Part         // its replacement, once loaded
	missing *continuo.MissingPart // set when the replacement is a text
}

// shownAttachments finds the attachments that messages of a plan show. A message that was cut down to text shows none.
func shownAttachments(plan *window.Plan) []*attached {
	var shown []*attached
	for i := range plan.Messages {
		m := &plan.Messages[i]
		if m.Entry == nil {
			continue
		}
		for _, a := range m.Entry.Attachments {
			if hasPlaceholder(m, a.Part) {
				shown = append(shown, &attached{Attachment: a, message: m, entry: m.Entry})
			}
		}
	}
	return shown
}

// hasPlaceholder reports whether a message shows the part of its entry's content at the same index.
func hasPlaceholder(m *window.Message, at int) bool {
	parts, stored := m.Content.Parts(), m.Entry.Content.Parts()
	return at >= 0 && at < len(parts) && at < len(stored) && bytes.Equal(parts[at].Raw, stored[at].Raw)
}

// maxConcurrentLoads bounds concurrent reads of objects: a bucket has a high latency.
const maxConcurrentLoads = 4

// load reads the parts, except those that the original request left out.
func load(ctx context.Context, log *continuo.Log, shown []*attached, without []continuo.MissingPart) {
	var loads sync.WaitGroup
	room := make(chan struct{}, maxConcurrentLoads)
	for _, a := range shown {
		at := slices.IndexFunc(without, func(m continuo.MissingPart) bool { return m.Object == a.ID })
		if at >= 0 {
			a.omit(without[at].Problem, nil)
			continue
		}
		room <- struct{}{}
		loads.Go(func() {
			defer func() { <-room }()
			a.load(ctx, log)
		})
	}
	loads.Wait()
}

func (a *attached) load(ctx context.Context, log *continuo.Log) {
	part, err := log.Attachment(ctx, a.entry, a.Attachment)
	switch {
	case err == nil:
		a.part = part
	case errors.Is(err, continuo.ErrObjectGone):
		a.omit(continuo.PartGone, err)
	default:
		a.omit(continuo.PartUnreadable, err)
	}
}

// omit replaces the part by a text that depends only on the entry and the problem.
func (a *attached) omit(problem continuo.PartProblem, err error) {
	a.missing = &continuo.MissingPart{Seq: a.entry.Seq, Part: a.Part, Object: a.ID, Problem: problem, Err: err}
	why := "cannot be read"
	if problem == continuo.PartGone {
		why = "is missing"
	}
	what := fmt.Sprintf("%d bytes", a.Bytes)
	if a.MediaType != "" {
		what = a.MediaType + ", " + what
	}
	a.part = continuo.TextPart(fmt.Sprintf("[%s: left out, because the attachment %s (%s) %s]", a.entry.Content.Parts()[a.Part].Type, a.ID, what, why))
}

// put sets the part in its message. A loaded part is also set in the message's entry, so that a comparison of the two
// finds the entry unchanged.
func (a *attached) put() {
	m := a.message
	m.Content = withPart(m.Content, a.Part, a.part)
	if a.missing != nil {
		return
	}
	entry := *m.Entry
	entry.Content = withPart(entry.Content, a.Part, a.part)
	m.Entry = &entry
}

func withPart(content continuo.Content, at int, part continuo.Part) continuo.Content {
	parts := slices.Clone(content.Parts())
	parts[at] = part
	return continuo.Parts(parts...)
}
