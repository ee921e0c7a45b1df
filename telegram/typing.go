package telegram

import (
	"context"
	"time"

	"github.com/continuo-log/continuo/internal/backoff"
)

const (
	typingDelay = time.Second      // before the first sign: of a turn that is over long since there is none
	typingEvery = 4 * time.Second  // Telegram shows one for 5 s
	typingMost  = 15 * time.Minute // if nobody ever says that the role has ended
)

// typing shows in the chat that a role is writing.
type typing struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// startTyping shows it until it is stopped. That it fails matters to nobody.
func (f *FrontEnd) startTyping(ctx context.Context, role string) *typing {
	ctx, cancel := context.WithTimeout(ctx, typingMost)
	t := &typing{cancel, make(chan struct{})}
	by := f.voice(Event{Kind: EventSpeaking, Role: role})
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

// stop ends it, and returns when it has ended; nil is no typing.
func (t *typing) stop() {
	if t != nil {
		t.cancel()
		<-t.done
	}
}
