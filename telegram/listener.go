package telegram

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/continuo-log/continuo/internal/backoff"
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
			err = backoff.Wait(ctx, standBy+rand.N(standBy)) //nolint:gosec // spreads callers, hides nothing
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
	failures int           // of the newest questions
	held     int           // how often the first update that is not confirmed has failed
	overtook map[int64]bool
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
		return nil, backoff.Wait(ctx, time.Second)
	}
	return updates, err
}

// take handles updates, in their order, and has them confirmed by the next question. One that cannot be handled comes
// again with that, and with it what was written since: of what waits behind it only commands that may overtake it are
// carried out.
func (p *polling) take(ctx context.Context, updates []update) error {
	p.failures, p.wait = 0, p.frontEnd.options.PollTime
	if len(updates) == 0 {
		p.offset, p.held, p.overtook = 0, 0, nil
	}
	for i, u := range updates {
		err := error(nil)
		if p.overtook[u.ID] {
			err = p.frontEnd.settle(ctx, u)
		} else {
			err = p.frontEnd.one(ctx, u)
		}
		if err != nil {
			return p.hold(ctx, u, err, updates[i+1:])
		}
		p.held = 0
		delete(p.overtook, u.ID)
		p.offset = u.ID + 1
	}
	return nil
}

// tellAfter is how often an update is tried before the person is told that it waits: it takes about two seconds.
const tellAfter = 3

// hold leaves an update that failed for the next question, and waits.
func (p *polling) hold(ctx context.Context, u update, failure error, behind []update) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := p.frontEnd
	p.held++
	f.log.ErrorContext(ctx, "telegram_update_failed", "update_id", u.ID, "error", failure.Error(), "failures", p.held)
	if p.held == tellAfter {
		_ = f.tell(ctx, saidWaits) // a nicety
	}
	for _, later := range behind {
		if f.overtakes(later) && !p.overtook[later.ID] && f.one(ctx, later) == nil {
			if p.overtook == nil {
				p.overtook = map[int64]bool{}
			}
			p.overtook[later.ID] = true
		}
	}
	return backoff.Wait(ctx, after(p.held-1))
}

// rest waits after a failure.
func (p *polling) rest(ctx context.Context, failure error) error {
	f := p.frontEnd
	f.listener.obeyRetryAfter(failure)
	f.log.WarnContext(ctx, "telegram_poll_failed", "error", failure.Error(), "failures", p.failures+1)
	wait := after(p.failures)
	p.failures++
	return backoff.Wait(ctx, wait)
}
