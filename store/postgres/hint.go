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
	// hintChannel is what the processes of a database tell one another on.
	hintChannel = "continuo"

	// The commit of a NOTIFY waits for a lock that all servers' processes share, and by default for the disk.
	// Nobody needs a hint of a server that crashed, so it does not wait for the disk.
	sendHint = `SELECT set_config('synchronous_commit', 'off', true), pg_notify('` + hintChannel + `', $1)`

	// hintEvery is the time between two notifications, for all conversations together.
	hintEvery = 10 * time.Millisecond
	// hintRetry is the time after one that failed.
	hintRetry = time.Second
	// hintTimeout bounds one, and lastHintTimeout the one that close waits for.
	hintTimeout     = 5 * time.Second
	lastHintTimeout = time.Second
	// maxHint is the size of a payload; the server takes 7999 bytes.
	maxHint = 7500
	// anyConversation stands in a payload for more conversations than fit.
	anyConversation = "*"
)

// hints tells other processes which conversations this one has changed. It gathers them and sends them
// outside of the commits that made the changes, so that no commit waits for it. A nil *hints tells nothing.
type hints struct {
	sender string // begins each payload, so that a store knows its own
	send   func(ctx context.Context, payload string) error

	mu      sync.Mutex
	waiting map[string]bool
	size    int  // of the payload for those that wait
	overrun bool // there were too many to name

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

// changed has others told that a change of a conversation was committed. It never waits.
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

// close tells what still waits, if the database takes it, and returns when nothing is sent any more.
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
			_ = h.tell(lastHintTimeout)
			return
		case <-h.wake:
		}
		pause := hintEvery
		if h.tell(hintTimeout) != nil {
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

// tell sends what waits. When that fails, the next payload stands for all conversations.
func (h *hints) tell(timeout time.Duration) error {
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

// take returns the payload for what waits, "" when nothing does.
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

// readHint returns the sender and the conversations of a payload, nil for any.
func readHint(payload string) (sender string, conversationIDs []string) {
	sender, rest, _ := strings.Cut(payload, " ")
	if rest == "" || rest == anyConversation {
		return sender, nil
	}
	return sender, strings.Split(rest, " ")
}
