package contexts

import (
	"context"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/window"
)

// FormatHandoff is the section of a task's prompt that describes a conversation. Only the view handoff has it.
const FormatHandoff Format = "handoff"

// renderHandoff renders a context as the section of a task's prompt, after the envelope's system messages.
func (cx *Contexts) renderHandoff(ctx context.Context, conversation continuo.Conversation, envelope continuo.Envelope, c *Context) error {
	section, err := cx.handoffText(ctx, conversation, c.Plan)
	texts := append([]string{}, envelope.System...)
	if section != "" {
		texts = append(texts, section)
	}
	c.Text = strings.Join(texts, "\n\n")
	return err
}

// handoffText renders a plan of the view handoff as the section of a task's prompt.
func (cx *Contexts) handoffText(ctx context.Context, conversation continuo.Conversation, plan *window.Plan) (string, error) {
	if plan.View != task.HandoffView {
		return "", fmt.Errorf("the format %s: %w: only the view %s has it, not %s", FormatHandoff, continuo.ErrInvalid, task.HandoffView, plan.View)
	}
	shown := map[int64]bool{}
	for _, item := range plan.Items {
		shown[item.Seq] = item.After != nil
	}
	ranges := []continuo.Range{{From: plan.Window.Start, To: plan.At}}
	if pins := plan.Window.Pins; len(pins) > 0 {
		ranges = []continuo.Range{{From: pins[0], To: pins[0]}, ranges[0]}
	}
	var entries []continuo.Entry
	for _, r := range ranges {
		if r.From > r.To {
			continue
		}
		for entry, err := range cx.log.Read(ctx, conversation, r) {
			if err != nil {
				return "", err
			}
			if shown[entry.Seq] {
				entries = append(entries, entry)
			}
		}
	}
	return cx.catalog.Options.Handoff.Section(entries), nil
}
