package telegram

import (
	"context"
	"time"

	"github.com/continuo-log/continuo/internal/backoff"
)

const (
	typingDelay = time.Second      // before the first indicator: a turn that is long over needs none
	typingEvery = 4 * time.Second  // Telegram shows an indicator for 5 s
	maxTyping   = 15 * time.Minute // if no event ever ends the role's turn
)

// typing shows in the chat that a role is writing.
type typing struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// startTyping shows the indicator until it is stopped. Its failures are ignored.
func (f *FrontEnd) startTyping(ctx context.Context, role string) *typing {
	ctx, cancel := context.WithTimeout(ctx, maxTyping)
	t := &typing{cancel, make(chan struct{})}
	by := f.botFor(Event{Kind: EventSpeaking, Role: role})
	go func() {
		defer close(t.done)
		for wait := typingDelay; backoff.Wait(ctx, wait) == nil && by.pace(ctx) == nil; wait = typingEvery {
			err := by.typing(ctx, f.options.ChatID)
			by.obeyRetryAfter(err)
			if err != nil && !isPassing(err) {
				return
			}
		}
	}()
	return t
}

// stop stops the indicator and waits until it has ended; t may be nil.
func (t *typing) stop() {
	if t != nil {
		t.cancel()
		<-t.done
	}
}
