package postgres

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// hintChannel is the NOTIFY channel that the processes of one database share.
	hintChannel = "continuo"

	// The commit of a NOTIFY waits for a lock that all processes of the server share, and by default for the
	// disk. Notifications need not survive a crash of the server, so the commit does not wait for the disk.
	sendHint = `SELECT set_config('synchronous_commit', 'off', true), pg_notify('` + hintChannel + `', $1)`

	// hintEvery is the time between two notifications, for all conversations together.
	hintEvery = 10 * time.Millisecond
	// hintRetry is the pause after a notification that failed.
	hintRetry = time.Second
	// hintTimeout bounds one notification, and lastHintTimeout the last one, which close waits for.
	hintTimeout     = 5 * time.Second
	lastHintTimeout = time.Second
	// maxHint is the size of a payload; the server takes 7999 bytes.
	maxHint = 7500
	// anyConversation replaces the names in a payload when more conversations changed than fit.
	anyConversation = "*"
)

// hints notifies other processes of the conversations that this one has changed. It gathers their ids and
// sends them outside of the commits that made the changes, so that no commit waits for it. A nil *hints sends
// nothing.
type hints struct {
	sender string // begins each payload, so that a store knows its own
	send   func(ctx context.Context, payload string) error

	mu      sync.Mutex
	waiting map[string]bool
	size    int  // of the payload that waits to be sent
	overrun bool // more conversations changed than fit

	wake    chan struct{} // holds one token while something waits
	closing chan struct{}
	closed  sync.WaitGroup
}

// newHints sends through connections of the pool; close it before the pool.
func newHints(pool *pgxpool.Pool) *hints {
	return startHints(func(ctx context.Context, payload string) error {
		_, err := pool.Exec(ctx, sendHint, payload)
		return err
	})
}

func startHints(send func(ctx context.Context, payload string) error) *hints {
	h := &hints{
		sender: rand.Text(), send: send, waiting: make(map[string]bool),
		wake: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	h.closed.Go(h.run)
	return h
}

// changed queues a notification that a change of a conversation was committed. It never blocks.
func (h *hints) changed(conversationID string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.overrun || h.waiting[conversationID] {
		return
	}
	h.size += len(" ") + len(conversationID)
	if len(h.sender)+h.size > maxHint || strings.ContainsAny(conversationID, " \x00") {
		h.overrun = true
	} else {
		h.waiting[conversationID] = true
	}
	h.rouse()
}

func (h *hints) rouse() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// close sends what still waits, if the database accepts it, and returns when all sending has ended.
func (h *hints) close() {
	if h == nil {
		return
	}
	close(h.closing)
	h.closed.Wait()
}

func (h *hints) run() {
	for {
		select {
		case <-h.closing:
			_ = h.flush(lastHintTimeout)
			return
		case <-h.wake:
		}
		pause := hintEvery
		if h.flush(hintTimeout) != nil {
			pause = hintRetry
		}
		h.wait(pause)
	}
}

func (h *hints) wait(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.closing:
	}
}

// flush sends the pending hints. If that fails, the next payload names all conversations.
func (h *hints) flush(timeout time.Duration) error {
	payload := h.take()
	if payload == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := h.send(ctx, payload)
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.overrun = true
		h.rouse()
	}
	return err
}

// take returns the payload of what waits, "" when nothing waits.
func (h *hints) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 && !h.overrun {
		return ""
	}
	var payload strings.Builder
	payload.WriteString(h.sender)
	if h.overrun {
		payload.WriteString(" " + anyConversation)
	} else {
		for id := range h.waiting {
			payload.WriteString(" " + id)
		}
	}
	clear(h.waiting)
	h.size, h.overrun = 0, false
	return payload.String()
}

// readHint returns the sender and the conversations of a payload; nil means any conversation.
func readHint(payload string) (sender string, conversationIDs []string) {
	sender, rest, _ := strings.Cut(payload, " ")
	if rest == "" || rest == anyConversation {
		return sender, nil
	}
	return sender, strings.Split(rest, " ")
}
