package telegram

import (
	"context"
	"iter"

	"github.com/continuo-log/continuo"
)

// Crew is what a front end needs of a crew: one conversation, into which people speak and in which roles answer. Its
// methods are called by several goroutines. An error that is a [*RefusedError] is told to the person; any other is
// taken for a passing one, and what changes something is tried again until it succeeds.
type Crew interface {
	// Say hands a person's message in, and returns when it stands in the log. A key that was there before changes
	// nothing, whatever the message. author is nil where the chat is that of one person.
	Say(ctx context.Context, key string, message continuo.Content, author *continuo.Author) error
	// Reset has all roles begin anew, once for each key, and Restore takes the newest beginning back; both return a
	// sentence for people.
	Reset(ctx context.Context, key string) (string, error)
	Restore(ctx context.Context, key string) (string, error)
	// Stop stops what the crew does now, and Resume lets it go on; both return a sentence for people, and do nothing where
	// that is so already.
	Stop(ctx context.Context) (string, error)
	Resume(ctx context.Context) (string, error)
	// Status, Roles and Context are texts for people: how the crew stands, who is in it, and what a role sees now.
	Status(ctx context.Context) (string, error)
	Roles(ctx context.Context) (string, error)
	Context(ctx context.Context, role string) (string, error)

	// RunExclusive runs do while no other front end of the chat does the same, and returns its error. Do's context ends when
	// another may; RunExclusive waits for its turn again then, until ctx is done.
	RunExclusive(ctx context.Context, do func(ctx context.Context) error) error
	// Events yields what the front end shows, those events with a seq after a given one that are there and those that
	// come, in the order of the log, until ctx is done. The same log always yields the same events, but for EventSpeaking.
	Events(ctx context.Context, after int64) iter.Seq2[Event, error]
	// Delivered says how far the front end is; where nothing was sent yet, where it begins. SetDelivered keeps it, and
	// returns when it is stored; one that is behind what is stored changes nothing.
	Delivered(ctx context.Context) (Delivery, error)
	SetDelivered(ctx context.Context, delivery Delivery) error
}

// Event is something of a crew's that a front end may show.
type Event struct {
	// Seq is that of the entry which tells of it.
	Seq  int64
	Kind EventKind
	// Role is the role's name, and DisplayName what people call it; "" for EventEnded.
	Role, DisplayName string
	// Text is what a role said, of EventAnswer; why it did not answer, of EventFailed; of EventEnded a line for
	// people, or "" where there is nothing to say.
	Text string
}

// EventKind says what an Event tells.
type EventKind string

// The kinds of events.
const (
	EventAnswer   EventKind = "answer"   // a role has answered
	EventPassed   EventKind = "passed"   // a role had nothing to add; never shown
	EventFailed   EventKind = "failed"   // a role did not answer in its turn
	EventSpeaking EventKind = "speaking" // a role's turn has begun; may be left out, and come late
	EventEnded    EventKind = "ended"    // a cycle has ended
)

// Delivery says how much of a crew's events has been sent.
type Delivery struct {
	// Seq is that of the newest event that was sent whole.
	Seq int64
	// Parts is how many parts were sent of the first event after Seq that is sent at all. How an event is split depends
	// on the limit of the front end: after a change of it, the rest of an event that was half sent is split anew.
	Parts int
}

// RefusedError is an error of a [Crew] that trying again will not mend.
type RefusedError struct {
	Reason string // for the person who asked
}

func (e *RefusedError) Error() string { return e.Reason }
