package telegram

import (
	"context"
	"iter"

	"github.com/continuo-log/continuo"
)

// Crew is the interface of a crew that a front end needs: one conversation, in which people write and roles answer. Its
// methods are called by several goroutines. A [*RefusedError] is reported to the person; any other error is taken for a
// temporary one, and a change is retried until it succeeds.
type Crew interface {
	// Send appends a person's message, and returns when it is in the log. A key that was used before changes nothing,
	// whatever the message. author is nil where the chat has one person only.
	Send(ctx context.Context, key string, message continuo.Content, author *continuo.Author) error
	// Reset makes all roles start again, once for each key, and Restore undoes the newest reset; both return a
	// sentence for people.
	Reset(ctx context.Context, key string) (string, error)
	Restore(ctx context.Context, key string) (string, error)
	// Stop stops the crew's current cycle, and Resume resumes it; both return a sentence for people, and do nothing if
	// the crew is in that state already.
	Stop(ctx context.Context) (string, error)
	Resume(ctx context.Context) (string, error)
	// Status, Roles and Context are texts for people: the crew's state, its roles, and what a role sees now.
	Status(ctx context.Context) (string, error)
	Roles(ctx context.Context) (string, error)
	Context(ctx context.Context, role string) (string, error)

	// RunExclusive runs do while no other front end of the chat does the same, and returns its error. Do's context ends
	// when another front end may run; RunExclusive then waits for its turn again, until ctx is done.
	RunExclusive(ctx context.Context, do func(ctx context.Context) error) error
	// Events yields the events for the front end after a seq, first the existing ones and then new ones, in the order
	// of the log, until ctx is done. The same log always yields the same events, except for EventSpeaking.
	Events(ctx context.Context, after int64) iter.Seq2[Event, error]
	// Delivered returns how far the front end has sent the events; if it has sent nothing yet, where it begins.
	// SetDelivered stores that position and returns when it is durable; a position before the stored one changes nothing.
	Delivered(ctx context.Context) (Delivery, error)
	SetDelivered(ctx context.Context, delivery Delivery) error
}

// Event is an event of a crew that a front end may show.
type Event struct {
	// Seq is the seq of the entry that records the event.
	Seq  int64
	Kind EventKind
	// Role is the role's name, and DisplayName its name for people; "" for EventEnded.
	Role, DisplayName string
	// Text is the answer of an EventAnswer; the reason of an EventFailed; of an EventEnded a line for people, or ""
	// where there is nothing to say.
	Text string
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events.
const (
	EventAnswer   EventKind = "answer"   // a role has answered
	EventPassed   EventKind = "passed"   // a role had nothing to add; never shown
	EventFailed   EventKind = "failed"   // a role's turn failed
	EventSpeaking EventKind = "speaking" // a role's turn has begun; may be missing, or late
	EventEnded    EventKind = "ended"    // a cycle has ended
)

// Delivery is a position in a crew's events: how many of them have been sent.
type Delivery struct {
	// Seq is the seq of the newest event that was sent completely.
	Seq int64
	// Parts is how many parts were sent of the first event after Seq that the front end shows. The parts of an event
	// depend on the front end's limit: after a change of the limit, the rest of a partly sent event is split again.
	Parts int
}

// RefusedError is an error of a [Crew] that retrying does not fix.
type RefusedError struct {
	Reason string // for the person who sent the command
}

func (e *RefusedError) Error() string { return e.Reason }
