package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	continuo "github.com/continuo-log/continuo"
)

// Attach puts the attachments of a plan's messages in their places, byte for byte, so that the plan renders
// as if nothing had been kept aside. It reads the objects of what is shown and no others, all of which
// are then in memory. In the place of one that cannot be read stands a text that says so, and plan.Missing
// names it: a lost object takes an image from a conversation, never the conversation. It fails only when
// ctx is done.
func Attach(ctx context.Context, log *continuo.Log, plan *continuo.Plan) error {
	return attach(ctx, log, plan, nil)
}

// attach is Attach for a request that is made again, which went without some of the attachments.
func attach(ctx context.Context, log *continuo.Log, plan *continuo.Plan, without []continuo.MissingPart) error {
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
	message *continuo.Message
	entry   *continuo.Entry       // with the placeholder
	part    continuo.Part         // what stands in its place, once it is loaded
	missing *continuo.MissingPart // why that is a text
}

// shownAttachments finds the attachments that messages of a plan show. What was cut down to text shows none.
func shownAttachments(plan *continuo.Plan) []*attached {
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

// hasPlaceholder reports whether a message shows a part of its entry's content in the same place.
func hasPlaceholder(m *continuo.Message, at int) bool {
	parts, stored := m.Content.Parts(), m.Entry.Content.Parts()
	return at >= 0 && at < len(parts) && at < len(stored) && bytes.Equal(parts[at].Raw, stored[at].Raw)
}

// loadsAtOnce bounds how many objects are read at the same time: a bucket takes a while to begin.
const loadsAtOnce = 4

// load reads the parts, but for those that the request went without.
func load(ctx context.Context, log *continuo.Log, shown []*attached, without []continuo.MissingPart) {
	var loads sync.WaitGroup
	room := make(chan struct{}, loadsAtOnce)
	for _, a := range shown {
		at := slices.IndexFunc(without, func(m continuo.MissingPart) bool { return m.Object == a.ID })
		if at >= 0 {
			a.leaveOut(without[at].Problem, nil)
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
		a.leaveOut(continuo.PartGone, err)
	default:
		a.leaveOut(continuo.PartUnreadable, err)
	}
}

// leaveOut has a text in the part's place. Its words depend on the entry and the problem alone.
func (a *attached) leaveOut(problem continuo.PartProblem, err error) {
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

// put puts the part into its message, and a part that is whole into the entry there, too: who asks whether
// an entry is shown as it was appended is told that it is.
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
