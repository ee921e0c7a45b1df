package turn

import (
	"context"
	"sync"
	"time"
)

// clock limits the running time of a turn. It is paused while calls of the turn wait for a person.
type clock struct {
	expire func()

	mu      sync.Mutex
	timer   *time.Timer
	until   time.Time     // the deadline, while the clock runs
	left    time.Duration // the remaining time, while it is paused
	waiting int           // calls that wait for a person
}

// withClock returns a context that is cancelled with a cause when the clock has run for a limit.
func withClock(parent context.Context, limit time.Duration, overTime error) (context.Context, *clock, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	c := &clock{expire: func() { cancel(overTime) }}
	c.start(limit)
	return ctx, c, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timer.Stop()
		cancel(nil)
	}
}

func (c *clock) start(limit time.Duration) {
	c.until = time.Now().Add(limit)
	c.timer = time.AfterFunc(limit, c.expire)
}

// hold pauses the clock until release is called. Several calls may hold it at the same time.
func (c *clock) hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting++; c.waiting == 1 {
		c.timer.Stop()
		c.left = time.Until(c.until)
	}
	return c.release
}

func (c *clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting--; c.waiting == 0 {
		c.start(c.left)
	}
}

// deadline returns the deadline if the clock is not paused again.
func (c *clock) deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until
}

// untilDeadline gives a model request the turn's remaining time. No call waits for a person during a model request.
type untilDeadline struct {
	context.Context
	deadline time.Time
}

func (u untilDeadline) Deadline() (time.Time, bool) { return u.deadline, true }
