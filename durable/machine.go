package durable

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Machine is one run as the driver sees it: it says what is to be done next, and how a step is carried out. It reads the
// log when it is asked to ([History] does that for machines), and is for one goroutine. K describes a step.
type Machine[K Attempt[K]] interface {
	// CatchUp and Append are those of History.
	CatchUp(ctx context.Context) error
	Append(ctx context.Context, entries ...continuo.Entry) (appended bool, err error)

	// Steps are what is to be done by what was read: one of kind Record, or one for each name that has something to do.
	// There is none where the run rests.
	Steps() []K
	// Describe says which attempt a step is.
	Describe(step K) Step
	// Record makes the entries that follow without a turn; of a step of kind Record.
	Record() []continuo.Entry
	// Begin carries out an attempt: its turn, from the cue to the conclusion, or what comes before that turn in the log.
	Begin(ctx context.Context, step K) error
	// Lost decides on an attempt that has begun and has no turn, Ended on one whose turn has ended. The log was read up to
	// the turn's end, and has no conclusion of the attempt.
	Lost(step K) Decision[K]
	Ended(ctx context.Context, step K, ended continuo.Turn) (Decision[K], error)
	// Rested is called when nothing is left to do.
	Rested(ctx context.Context)

	// BreakOff is that of History.
	BreakOff(ctx context.Context, reason string) error
	// IsSupported reports whether this program has what the run needs. It is true where the run cannot be read, so that it
	// is ended.
	IsSupported(ctx context.Context) bool
}

// Brancher is a Machine whose steps can run side by side, those that do in conversations of their own.
type Brancher[K Attempt[K]] interface {
	Machine[K]
	// Announce makes the entries that record that those steps begin that are side by side and not recorded yet.
	Announce(ctx context.Context, steps []K) ([]continuo.Entry, error)
	// Clone makes a machine for another goroutine, with all that was read.
	Clone() Machine[K]
}

// Attempt is a step of a kind of run.
type Attempt[K any] interface {
	// After is the attempt behind one that came to no conclusion.
	After() K
}

// Step is an attempt in terms that all kinds of runs share.
type Step struct {
	Kind StepKind
	// Name is the node or the role whose step it is. Steps of one name are never taken at once.
	Name           string
	Visit, Attempt int
	// ConversationID is where its turn is.
	ConversationID string
	// Until is when the next attempt may begin; of Wait.
	Until time.Time
	// Branched says that others may be carried out meanwhile; of a Brancher.
	Branched bool
}

// StepKind says what is to be done.
type StepKind string

// The kinds of steps.
const (
	Begin  StepKind = "begin"  // the attempt is to begin
	Attend StepKind = "attend" // it has begun and has no conclusion: its turn says what is to be done
	Wait   StepKind = "wait"   // it broke off, and the next one begins later
	Record StepKind = "record" // what follows from the log needs no turn
)

// SameAttempt reports whether two steps are of the same attempt.
func (s Step) SameAttempt(other Step) bool {
	return s.Name == other.Name && s.Visit == other.Visit && s.Attempt == other.Attempt
}

// LeadsTo reports whether an attempt is still to begin where s is the step that its name has now: s begins it, or is the
// attempt before it, of which nothing was concluded.
func (s Step) LeadsTo(attempt Step) bool {
	if s.Kind == Attend || s.Kind == Wait {
		s.Kind = Begin
		s.Attempt++
	}
	return s.Kind == Begin && s.SameAttempt(attempt)
}

// Decision is what follows of an attempt that has no turn any more: entries, or another attempt.
type Decision[K any] struct {
	Entries []continuo.Entry
	// Next begins at once, where there are no entries; nil for none.
	Next *K
	// Yield leaves the conversation to other processes for a while before Next; longer for each of Broken attempts that
	// broke off one after another.
	Yield  bool
	Broken int
}
