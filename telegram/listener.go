package telegram

import (
	"context"
	"math/rand/v2"
	"time"
)

// standBy is how long to leave the bot's updates to another program that gets them, and as much again at most.
const standBy = 5 * time.Second

// poll takes updates and sends answers for as long as no other program gets the bot's updates. While one does, nothing
// is sent: that one sends.
func (f *FrontEnd) poll(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running *delivering
	defer func() { running.stop() }()
	p := polling{frontEnd: f}
	for {
		updates, err := p.next(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isRefusedToken(err):
			return err
		case isConflict(err):
			running.stop()
			running = nil
			f.log.WarnContext(ctx, "telegram_standing_by", "error", err.Error(), "reason", "another program gets the updates of the bot")
			p = polling{frontEnd: f}
			err = pause(ctx, standBy+rand.N(standBy)) //nolint:gosec // spreads callers, hides nothing
		case err != nil:
			err = p.rest(ctx, err)
		default:
			if running == nil {
				running = f.startDelivering(ctx, fail)
			}
			err = p.take(ctx, updates)
		}
		if err != nil {
			return context.Cause(ctx)
		}
	}
}

// polling is how far long polling is.
type polling struct {
	frontEnd *FrontEnd
	// offset confirms the updates before it; 0 none. It goes back to 0 when they are known to be confirmed: after a
	// silent week Telegram counts on from anywhere, and an offset above that would confirm what was never seen.
	offset   int64
	wait     time.Duration // that Telegram holds the next question open; 0 at first, to see soon who gets the updates
	failures int
}

// next asks for updates. An answer without any that comes at once is not one of a long poll, and is waited after.
func (p *polling) next(ctx context.Context) ([]update, error) {
	listener := p.frontEnd.listener
	if err := listener.pace(ctx); err != nil {
		return nil, err
	}
	begin := time.Now()
	updates, err := listener.updates(ctx, p.offset, p.wait)
	if err == nil && len(updates) == 0 && p.wait > 0 && time.Since(begin) < time.Second {
		return nil, pause(ctx, time.Second)
	}
	return updates, err
}

// take handles updates, in their order, and has them confirmed by the next question.
func (p *polling) take(ctx context.Context, updates []update) error {
	p.failures, p.wait = 0, p.frontEnd.options.PollTime
	if len(updates) == 0 {
		p.offset = 0
	}
	for _, u := range updates {
		if err := p.frontEnd.take(ctx, u); err != nil {
			return err
		}
		p.offset = u.ID + 1
	}
	return nil
}

// rest waits after a failure.
func (p *polling) rest(ctx context.Context, failure error) error {
	f := p.frontEnd
	f.listener.heed(failure)
	f.log.WarnContext(ctx, "telegram_poll_failed", "error", failure.Error(), "failures", p.failures+1)
	wait := backoff(p.failures)
	p.failures++
	return pause(ctx, wait)
}
