package telegram

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/continuo-log/continuo/internal/backoff"
)

// bot is a bot that sends. It makes no call before the end of a delay that Telegram has requested.
type bot struct {
	client
	name string // for the log: the role's, or "listener"
	log  *slog.Logger

	mu    sync.Mutex
	until time.Time // no call before this time
}

// insist repeats a call until Telegram has accepted or refused it, or ctx is done: temporary failures are retried. The
// error is then an apiError, or ctx's.
func (b *bot) insist(ctx context.Context, call func(context.Context) error) error {
	for failures := 0; ; failures++ {
		if err := b.pace(ctx); err != nil {
			return err
		}
		err := lingering(ctx, call)
		if err == nil || !isPassing(err) {
			return err
		}
		b.obeyRetryAfter(err)
		b.log.WarnContext(ctx, "telegram_call_failed", "bot", b.name, "error", err.Error(), "failures", failures+1)
		if retryAfter(err) > 0 {
			continue // pace waits first
		}
		if err := backoff.Wait(ctx, after(failures)); err != nil {
			return err
		}
	}
}

// pace waits for the delay that Telegram has requested.
func (b *bot) pace(ctx context.Context) error {
	b.mu.Lock()
	wait := time.Until(b.until)
	b.mu.Unlock()
	if wait <= 0 {
		return ctx.Err()
	}
	return backoff.Wait(ctx, wait)
}

// obeyRetryAfter records the delay that Telegram requests in an error.
func (b *bot) obeyRetryAfter(err error) {
	wait := retryAfter(err)
	if wait <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := time.Now().Add(wait); until.After(b.until) {
		b.until = until
	}
}

// lingerTime is how long a call in progress may continue at shutdown: if it were cancelled, the next process would
// repeat it, and a message would appear twice in the chat.
const lingerTime = 3 * time.Second

// lingering makes a call that may outlive ctx by lingerTime.
func lingering(ctx context.Context, call func(context.Context) error) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lingerTime, cancel) })
	defer stop()
	err := call(own)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// isPassing reports whether the same call may succeed later: it had no response, Telegram has a fault, or it requests a
// delay.
func isPassing(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	refused, ok := errors.AsType[*apiError](err)
	return !ok || refused.Code >= http.StatusInternalServerError || refused.Code == http.StatusTooManyRequests || refused.Code < http.StatusBadRequest
}

func retryAfter(err error) time.Duration {
	if refused, ok := errors.AsType[*apiError](err); ok && refused.Code == http.StatusTooManyRequests {
		return refused.RetryAfter
	}
	return 0
}

// isRefusedToken reports whether Telegram knows no bot with the token: it answers 404 to a malformed token.
func isRefusedToken(err error) bool {
	refused, ok := errors.AsType[*apiError](err)
	return ok && (refused.Code == http.StatusUnauthorized || refused.Code == http.StatusNotFound)
}

// isConflict reports whether another program receives the bot's updates.
func isConflict(err error) bool {
	refused, ok := errors.AsType[*apiError](err)
	return ok && refused.Code == http.StatusConflict
}

// isUnreadable reports whether Telegram cannot parse the message's Markdown.
func isUnreadable(err error) bool {
	refused, ok := errors.AsType[*apiError](err)
	return ok && refused.Code == http.StatusBadRequest && strings.Contains(refused.Description, "can't parse entities")
}

const (
	firstWait = 500 * time.Millisecond
	maxWait   = 30 * time.Second
)

// after is the delay after a number of failures: it doubles up to maxWait, and half of it is random.
func after(failures int) time.Duration {
	wait := backoff.Doubled(firstWait, maxWait, failures+1)
	return wait/2 + rand.N(wait/2) //nolint:gosec // spreads callers, hides nothing
}
