package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/telegram"
)

// crewLog is what a crew keeps: it outlives the programs that work on it.
type crewLog struct {
	mu        sync.Mutex
	changed   chan struct{} // closed, and replaced, with each event
	seq       int64
	keys      []string
	sent      []string // NAME: TEXT
	resets    int
	events    []telegram.Event
	delivered telegram.Delivery
	behind    []string // what was noted and is no step forward
	stopped   []string // what had been said at the newest stop
	// turn has room for the one front end that is alone. Default: each is.
	turn chan struct{}
	// answer says what the roles say to a person's message; their seq is set by the log. Default: nothing.
	answer func(message string) []telegram.Event
}

func newCrewLog() *crewLog { return &crewLog{changed: make(chan struct{})} }

// add appends events; the log is held.
func (l *crewLog) add(events ...telegram.Event) {
	for _, e := range events {
		l.seq++
		e.Seq = l.seq
		l.events = append(l.events, e)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// emit appends events.
func (l *crewLog) emit(events ...telegram.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(events...)
}

func (l *crewLog) messages() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sent)
}

// crew is one program's way to the log.
type crew struct {
	*crewLog
	// step is asked before and after each call, and makes it fail. Default: nothing fails.
	step func(call string) error
}

// RunExclusive implements [telegram.Crew].
func (c *crew) RunExclusive(ctx context.Context, do func(ctx context.Context) error) error {
	if c.turn == nil {
		return do(ctx)
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	return do(ctx)
}

// do does something between two steps.
func (c *crew) do(ctx context.Context, call string, what func()) error {
	if err := errors.Join(ctx.Err(), c.ask(call+" begins")); err != nil {
		return err
	}
	c.mu.Lock()
	what()
	c.mu.Unlock()
	return c.ask(call + " ends")
}

func (c *crew) ask(step string) error {
	if c.step == nil {
		return nil
	}
	return c.step(step)
}

func (c *crew) Send(ctx context.Context, key string, message continuo.Content, author *continuo.Author) error {
	text := message.String()
	if strings.Contains(text, "refuse me") {
		return &telegram.RefusedError{Reason: "The crew is closed."}
	}
	return c.do(ctx, "Say", func() {
		if slices.Contains(c.keys, key) {
			return
		}
		c.keys = append(c.keys, key)
		name := "-"
		if author != nil {
			name = author.DisplayName
		}
		c.sent = append(c.sent, name+": "+text)
		c.seq++
		if c.answer != nil {
			c.add(c.answer(text)...)
		}
	})
}

func (c *crew) Reset(ctx context.Context, key string) (string, error) {
	return "All begin again.", c.do(ctx, "Reset", func() {
		if !slices.Contains(c.keys, key) {
			c.keys = append(c.keys, key)
			c.resets++
		}
	})
}

func (c *crew) Restore(context.Context, string) (string, error) {
	return "", &telegram.RefusedError{Reason: "There is nothing to take back."}
}

func (c *crew) Stop(context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = slices.Clone(c.sent)
	return "Stopped.", nil
}

func (c *crew) Resume(context.Context) (string, error) {
	return "", &telegram.RefusedError{Reason: "There is nothing to continue with."}
}

func (c *crew) Status(context.Context) (string, error) { return "Round 1.", nil }

func (c *crew) Roles(context.Context) (string, error) { return "", errors.New("the store is away") }

func (c *crew) Context(_ context.Context, role string) (string, error) {
	return strings.Repeat("User: what "+role+" sees.\n\n", 3000) + "User: the newest word.", nil
}

func (c *crew) Events(ctx context.Context, after int64) iter.Seq2[telegram.Event, error] {
	return func(yield func(telegram.Event, error) bool) {
		for {
			c.mu.Lock()
			events, changed := slices.Clone(c.events), c.changed
			c.mu.Unlock()
			for _, e := range events {
				if e.Seq <= after {
					continue
				}
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (c *crew) Delivered(ctx context.Context) (d telegram.Delivery, err error) {
	err = c.do(ctx, "Delivered", func() { d = c.delivered })
	return d, err
}

func (c *crew) SetDelivered(ctx context.Context, d telegram.Delivery) error {
	return c.do(ctx, "SetDelivered", func() {
		if d.Seq < c.delivered.Seq || d.Seq == c.delivered.Seq && d.Parts <= c.delivered.Parts {
			c.behind = append(c.behind, fmt.Sprintf("%+v after %+v", d, c.delivered))
			return
		}
		c.delivered = d
	})
}
