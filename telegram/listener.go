package telegram

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/continuo-log/continuo/internal/backoff"
)

// standbyWait is how long to leave the bot's updates to another program that receives them; up to as much again is
// added at random.
const standbyWait = 5 * time.Second

// poll receives updates and sends answers while no other program receives the bot's updates. While another does, it
// sends nothing: that program sends.
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
			f.log.WarnContext(ctx, "telegram_standby", "error", err.Error(), "reason", "another program gets the updates of the bot")
			p = polling{frontEnd: f}
			err = backoff.Wait(ctx, standbyWait+rand.N(standbyWait)) //nolint:gosec // spreads callers, hides nothing
		case err != nil:
			err = p.pause(ctx, err)
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

// polling is the state of long polling.
type polling struct {
	frontEnd *FrontEnd
	// offset confirms the updates before it; 0 none. It returns to 0 when they are known to be confirmed: after a week
	// without updates Telegram continues with any id, and a higher offset would confirm updates that were never received.
	offset       int64
	wait         time.Duration // how long Telegram holds the next poll open; 0 at first, to see soon which program receives the updates
	failures     int           // of the newest polls
	heldFailures int           // how often the first unconfirmed update has failed
	overtook     map[int64]bool
}

// next polls for updates. After an empty response that comes at once, which no long poll gives, it waits.
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

// take handles updates in order; the next poll confirms them. An update that cannot be handled comes again with the
// next poll, together with newer ones: of those behind it, only commands that may overtake it run.
func (p *polling) take(ctx context.Context, updates []update) error {
	p.failures, p.wait = 0, p.frontEnd.options.PollTime
	if len(updates) == 0 {
		p.offset, p.heldFailures, p.overtook = 0, 0, nil
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
		p.heldFailures = 0
		delete(p.overtook, u.ID)
		p.offset = u.ID + 1
	}
	return nil
}

// notifyAfter is how often an update is tried before the person is notified that it waits: it takes about two seconds.
const notifyAfter = 3

// hold leaves a failed update for the next poll, and waits.
func (p *polling) hold(ctx context.Context, u update, failure error, behind []update) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := p.frontEnd
	p.heldFailures++
	f.log.ErrorContext(ctx, "telegram_update_failed", "update_id", u.ID, "error", failure.Error(), "failures", p.heldFailures)
	if p.heldFailures == notifyAfter {
		_ = f.notify(ctx, replyWaiting) // optional
	}
	for _, later := range behind {
		if f.overtakes(later) && !p.overtook[later.ID] && f.one(ctx, later) == nil {
			if p.overtook == nil {
				p.overtook = map[int64]bool{}
			}
			p.overtook[later.ID] = true
		}
	}
	return backoff.Wait(ctx, after(p.heldFailures-1))
}

// pause waits after a failure.
func (p *polling) pause(ctx context.Context, failure error) error {
	f := p.frontEnd
	f.listener.obeyRetryAfter(failure)
	f.log.WarnContext(ctx, "telegram_poll_failed", "error", failure.Error(), "failures", p.failures+1)
	wait := after(p.failures)
	p.failures++
	return backoff.Wait(ctx, wait)
}
