package telegram

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/continuo-log/continuo/internal/backoff"
)

// delivering sends answers in the background.
type delivering struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// startDelivering sends answers until it is stopped. It calls fail when Telegram refuses the listener's token.
func (f *FrontEnd) startDelivering(ctx context.Context, fail context.CancelCauseFunc) *delivering {
	ctx, cancel := context.WithCancel(ctx)
	d := &delivering{cancel, make(chan struct{})}
	go func() {
		defer close(d.done)
		if err := f.deliver(ctx); ctx.Err() == nil {
			fail(err)
		}
	}()
	return d
}

// stop stops sending and waits until it has ended; d may be nil.
func (d *delivering) stop() {
	if d != nil {
		d.cancel()
		<-d.done
	}
}

// deliver sends the crew's events from the stored position on, until ctx is done or Telegram refuses the listener's
// token.
func (f *FrontEnd) deliver(ctx context.Context) error {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := f.follow(ctx)
		if ctx.Err() != nil || isRefusedToken(err) {
			return err
		}
		if time.Since(began) > maxWait {
			failures = 0
		}
		if err != nil {
			f.log.ErrorContext(ctx, "telegram_delivery_failed", "error", err.Error(), "failures", failures+1)
		}
		if err := backoff.Wait(ctx, after(failures)); err != nil {
			return err
		}
	}
}

// follow sends the crew's events until they end.
func (f *FrontEnd) follow(ctx context.Context) error {
	delivered, err := f.crew.Delivered(ctx)
	if err != nil {
		return err
	}
	var busy *typing
	defer func() { busy.stop() }()
	for event, err := range f.crew.Events(ctx, delivered.Seq) {
		if err != nil {
			return err
		}
		busy.stop()
		busy = nil
		if event.Kind == EventSpeaking {
			busy = f.startTyping(ctx, event.Role)
			continue
		}
		if delivered, err = f.sendEvent(ctx, event, delivered); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sendEvent sends the remaining parts of an event, one after the other, and returns the new position.
func (f *FrontEnd) sendEvent(ctx context.Context, event Event, delivered Delivery) (Delivery, error) {
	parts := f.parts(event)
	if len(parts) == 0 {
		return delivered, nil
	}
	by := f.botFor(event)
	for i := delivered.Parts; i < len(parts)-1; i++ {
		var err error
		if by, err = f.sendAs(ctx, by, parts[i]); err != nil {
			return delivered, err
		}
		delivered.Parts = i + 1
		if err := f.note(ctx, delivered); err != nil {
			return delivered, err
		}
	}
	if delivered.Parts < len(parts) { // it has more if the limit has changed
		if _, err := f.sendAs(ctx, by, parts[len(parts)-1]); err != nil {
			return delivered, err
		}
	}
	delivered = Delivery{Seq: event.Seq}
	return delivered, f.note(ctx, delivered)
}

// parts are the messages of an event; none for an event that is not shown.
func (f *FrontEnd) parts(event Event) []part {
	name := cmp.Or(event.DisplayName, event.Role)
	switch event.Kind {
	case EventAnswer:
		return split(name, scan(event.Text, f.options.MaxMessageLength), f.options.MaxMessageLength)
	case EventFailed:
		line := oneLine(name, 64) + " did not answer."
		if reason := oneLine(event.Text, 300); reason != "" {
			line = oneLine(name, 64) + " did not answer: " + reason
		}
		return split("", verbatim(line), f.options.MaxMessageLength)
	case EventEnded:
		return split("", verbatim(event.Text), f.options.MaxMessageLength)
	default:
		return nil
	}
}

// botFor returns the bot that sends an event: a role's own bot sends only the role's answers.
func (f *FrontEnd) botFor(event Event) *bot {
	if event.Kind == EventAnswer || event.Kind == EventSpeaking {
		return cmp.Or(f.roles[event.Role], f.listener)
	}
	return f.listener
}

// note stores the position until it succeeds or ctx is done.
func (f *FrontEnd) note(ctx context.Context, delivered Delivery) error {
	for failures := 0; ; failures++ {
		err := lingering(ctx, func(ctx context.Context) error { return f.crew.SetDelivered(ctx, delivered) })
		if err == nil || ctx.Err() != nil {
			return err
		}
		f.log.ErrorContext(ctx, "telegram_delivery_not_recorded", "seq", delivered.Seq, "error", err.Error(), "failures", failures+1)
		if err := backoff.Wait(ctx, after(failures)); err != nil {
			return err
		}
	}
}

// sendAs sends a part with a bot, or with the listener if Telegram refuses that bot, and returns the bot for the
// remaining parts.
func (f *FrontEnd) sendAs(ctx context.Context, by *bot, p part) (*bot, error) {
	if by == f.listener {
		return by, f.sendAsListener(ctx, p)
	}
	err := f.send(ctx, by, p)
	if err == nil || ctx.Err() != nil {
		return by, err
	}
	f.log.WarnContext(ctx, "telegram_role_bot_refused", "role", by.name, "error", err.Error(), "instead", "the listener speaks")
	return f.listener, f.sendAsListener(ctx, p)
}

// partNotShown replaces a part that Telegram refuses. In a chat that does not exist, Telegram refuses this text as
// well.
const partNotShown = "(A part of this answer cannot be shown here. The log has all of it.)"

// sendAsListener sends a part until Telegram accepts it or its replacement. Nothing is skipped: a chat that the
// listener is not in blocks the answers until it is.
func (f *FrontEnd) sendAsListener(ctx context.Context, p part) error {
	for failures := 0; ; failures++ {
		err := f.send(ctx, f.listener, p)
		if err == nil || ctx.Err() != nil || isRefusedToken(err) {
			return err
		}
		refused, _ := errors.AsType[*apiError](err)
		if refused.Code == http.StatusBadRequest && refused.MigrateTo == 0 && f.send(ctx, f.listener, split("", verbatim(partNotShown), maxUnits)[0]) == nil {
			f.log.ErrorContext(ctx, "telegram_part_refused", "error", err.Error())
			return nil
		}
		f.log.ErrorContext(ctx, "telegram_chat_refused", "chat_id", f.options.ChatID, "new_chat_id", refused.MigrateTo, "error", err.Error(), "failures", failures+1)
		if err := backoff.Wait(ctx, after(failures+4)); err != nil {
			return err
		}
	}
}

// send sends a part to the chat.
func (f *FrontEnd) send(ctx context.Context, by *bot, p part) error {
	return f.sendTo(ctx, by, f.options.ChatID, p)
}

// sendTo sends a part, as plain text if Telegram cannot parse its Markdown.
func (f *FrontEnd) sendTo(ctx context.Context, by *bot, chatID int64, p part) error {
	err := by.insist(ctx, func(ctx context.Context) error { return by.send(ctx, chatID, p.Markdown, "MarkdownV2") })
	if !isUnreadable(err) {
		return err
	}
	f.log.WarnContext(ctx, "telegram_markdown_refused", "bot", by.name, "error", err.Error())
	return by.insist(ctx, func(ctx context.Context) error { return by.send(ctx, chatID, p.Plain, "") })
}
