package historytest

import (
	"fmt"
	"sync"
	"time"
)

// Kind is the kind of an operation.
type Kind string

// The kinds of operations.
const (
	Append      Kind = "append" // adds Value, after the seq After if that is at least 0
	Read        Kind = "read"   // shows Log
	Begin       Kind = "begin"  // begins the turn Turn with the message Value
	AppendEntry Kind = "say"    // adds Value as an entry of the running turn Turn, which Owner runs; Last ends the turn
	Take        Kind = "take"   // makes Owner the owner of the running turn Turn
	Signal      Kind = "signal" // is delivered to the running turn Turn
)

// Outcome is what a client knows about an operation's effect.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // it has had no effect, and never will
	Unknown Outcome = "unknown" // it may have taken effect, or may do so later, or never
)

// Operation is one operation of a client. Values are unique in a history, except in retries with an idempotency key.
type Operation struct {
	Client  int
	Kind    Kind
	Value   string
	Turn    string
	Owner   string // of the turn; "" if clients cannot know it
	After   int64  // the last seq that the client expects; less than 0: any
	Keyed   bool   // it has an idempotency key, which belongs to Value
	Last    bool
	Outcome Outcome
	Seq     int64    // of Value, if Outcome is Done; 0: unknown
	Log     []string // the values of all entries, in their order

	Called   time.Duration
	Answered time.Duration // meaningless if Outcome is Unknown
}

// String describes an operation on one line.
func (o Operation) String() string {
	text := fmt.Sprintf("%8.3f–%8.3f client %d: %s", o.Called.Seconds(), o.Answered.Seconds(), o.Client, o.Kind)
	if o.Kind == Read {
		return fmt.Sprintf("%s %d entries", text, len(o.Log))
	}
	text += fmt.Sprintf(" %q turn=%q owner=%q: %s", o.Value, o.Turn, o.Owner, o.Outcome)
	if o.After >= 0 && o.Kind == Append {
		text += fmt.Sprintf(" after %d", o.After)
	}
	if o.Seq > 0 {
		text += fmt.Sprintf(" as %d", o.Seq)
	}
	return text
}

// History collects the operations on one conversation. It is safe for concurrent use.
type History struct {
	mu         sync.Mutex
	begun      time.Time
	operations []Operation
}

// New begins a history.
func New() *History { return &History{begun: time.Now()} }

// Now is the time since the history began.
func (h *History) Now() time.Duration { return time.Since(h.begun) }

// Add records an operation whose answer has just come.
func (h *History) Add(o Operation) {
	o.Answered = h.Now()
	h.AddAt(o)
}

// AddAt records an operation whose times are set.
func (h *History) AddAt(o Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, o)
}

// Operations returns the recorded operations in the order of recording.
func (h *History) Operations() []Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Operation(nil), h.operations...)
}
