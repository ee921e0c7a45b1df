package durable

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Machine is one run as the driver uses it: it says which steps are due, and how one is executed. It reads the log
// only when asked to ([History] does that for machines), and is not safe for concurrent use. K describes a step.
type Machine[K Attempt[K]] interface {
	// CatchUp and Append are those of History.
	CatchUp(ctx context.Context) error
	Append(ctx context.Context, entries ...continuo.Entry) (appended bool, err error)

	// Steps are the steps that are due by the entries that were read: one of kind Record, or one for each name with a
	// step. There are none in a run that is not running.
	Steps() []K
	// Describe says which attempt a step is.
	Describe(step K) Step
	// Record makes the entries that follow without a turn, for a step of kind Record.
	Record() []continuo.Entry
	// Begin executes an attempt: its turn, from the cue to the conclusion, or only the entries that precede the turn.
	Begin(ctx context.Context, step K) error
	// Lost decides on an attempt that has begun and has no turn, Ended on one whose turn has ended. The log was read up
	// to the turn's end, and has no conclusion of the attempt.
	Lost(step K) Decision[K]
	Ended(ctx context.Context, step K, ended continuo.Turn) (Decision[K], error)
	// Idle is called when no step is due.
	Idle(ctx context.Context)

	// BreakOff is that of History.
	BreakOff(ctx context.Context, reason string) error
	// IsSupported reports whether this process has what the run needs. It is true where the run cannot be read, so that
	// the run is ended.
	IsSupported(ctx context.Context) bool
}

// Brancher is a Machine with steps that can run in parallel, each in a conversation of its own.
type Brancher[K Attempt[K]] interface {
	Machine[K]
	// Announce makes the entries that record the beginning of those parallel steps whose beginning is not recorded yet.
	Announce(ctx context.Context, steps []K) ([]continuo.Entry, error)
	// Clone copies a machine with its state for another goroutine.
	Clone() Machine[K]
}

// Attempt is a step of a kind of run.
type Attempt[K any] interface {
	// After is the attempt after one without a conclusion.
	After() K
}

// Step is an attempt in terms that all kinds of runs share.
type Step struct {
	Kind StepKind
	// Name is the node or the role of the step. Steps of one name never run at the same time.
	Name           string
	Visit, Attempt int
	// ConversationID is the conversation of its turn.
	ConversationID string
	// Until is when the next attempt may begin, for the kind Wait.
	Until time.Time
	// Branched says that other steps may run at the same time, in a Brancher.
	Branched bool
}

// StepKind is the kind of a step.
type StepKind string

// The kinds of steps.
const (
	Begin  StepKind = "begin"  // the attempt is to begin
	Attend StepKind = "attend" // it has begun and has no conclusion: its turn determines how to proceed
	Wait   StepKind = "wait"   // it broke off, and the next one begins later
	Record StepKind = "record" // the entries that follow need no turn
)

// SameAttempt reports whether two steps are of the same attempt.
func (s Step) SameAttempt(other Step) bool {
	return s.Name == other.Name && s.Visit == other.Visit && s.Attempt == other.Attempt
}

// LeadsTo reports whether an attempt is still to begin if s is the current step of its name: s begins the attempt, or
// is the attempt before it, without a conclusion.
func (s Step) LeadsTo(attempt Step) bool {
	if s.Kind == Attend || s.Kind == Wait {
		s.Kind = Begin
		s.Attempt++
	}
	return s.Kind == Begin && s.SameAttempt(attempt)
}

// Decision is the consequence of an attempt whose turn has ended or is missing: entries, or another attempt.
type Decision[K any] struct {
	Entries []continuo.Entry
	// Next begins at once, if there are no entries; nil for none.
	Next *K
	// Yield leaves the conversation to other processes for a while before Next; the wait grows with Broken, the number
	// of attempts that broke off in a row.
	Yield    bool
	Attempts int
}
