package turn

import (
	"encoding/json"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// Kind is the kind of an event.
type Kind string

// The kinds of events, in the order in which a turn emits them: one Started, and another one each time that a process
// takes the turn over from one that is gone ([Keeper.TakeUp]); for each round a Planned, any number of TextDelta,
// ReasoningDelta and CallDelta, an Answered, and for each call a Called, perhaps an Asked and a Decided, and a
// ToolDone; at the end one Finished or one Failed. An OwnItem is
// an item of the provider's own among them, such as a tool that it ran. A Wired has bytes of a forwarded answer that added nothing to its entry. Where the provider refuses the form of a request and another dialect,
// or another forwarded request, may fix it, a Rephrased comes after the round's Planned, and then the Planned of that request. Where
// the model fails before it has shown any output and there is a fallback, a FellBack comes after the round's Planned,
// and then the fallback's Planned.
const (
	Started        Kind = "started"
	Planned        Kind = "planned"
	TextDelta      Kind = "text"
	ReasoningDelta Kind = "reasoning"
	CallDelta      Kind = "call_delta"
	OwnItem        Kind = "item"
	Wired          Kind = "wire"
	Rephrased      Kind = "rephrased"
	FellBack       Kind = "fell_back"
	Answered       Kind = "answered"
	Called         Kind = "called"
	Asked          Kind = "asked"
	Decided        Kind = "decided"
	ToolDone       Kind = "tool_done"
	Finished       Kind = "finished"
	Failed         Kind = "failed"
)

// Event is one event of a turn. It is the same live and when it is read later.
type Event struct {
	// ID is higher than those of the turn's earlier events. There are gaps where a program was killed.
	ID     int64
	Kind   Kind
	TurnID string
	// More says that the reader gets the next event at once: what it writes for both may be sent together. It is not stored.
	More bool
	// Text is the text that a TextDelta or ReasoningDelta adds. A ReasoningDelta without text carries the provider's
	// Signature of the reasoning so far.
	Text      string
	Signature string
	// Wire are the bytes of a forwarded answer that end with this event; of the deltas and Wired.
	Wire string
	// Item is the provider's item; of OwnItem.
	Item json.RawMessage
	// Delta is a piece of a call; of CallDelta.
	Delta *model.ToolCallDelta
	// Call is the call that begins (Called), waits for a person's decision (Asked), or was decided (Decided), under the
	// tool's own name.
	Call *continuo.ToolCall
	// Until is when an undecided call is denied; of Asked. Zero: never.
	Until time.Time
	// Decision is the decision on the call; of Decided.
	Decision *Decision
	// Plan is the plan of the round's request, without items and messages, and Round what is known of the request so
	// far; of Planned. Finished and Failed have the Plan of the last round.
	Plan  *window.Plan
	Round *continuo.Round
	// Entry is the appended entry: the user's (Started), an answer (Answered, Finished, Failed) or a result (ToolDone).
	// A turn that resumes another one may start without an entry.
	Entry *continuo.Entry
	// Attempt is the failed request; of FellBack and Rephrased.
	Attempt *Attempt
	// Usage is the sum over the turn's rounds; of Finished and Failed.
	Usage continuo.Usage
}

// IsEnd reports whether the event is the last one of its turn.
func (e *Event) IsEnd() bool { return e.Kind == Finished || e.Kind == Failed }

// Attempt is a request that failed before it showed any output and was replaced by another one. It has no entry in the
// log.
type Attempt struct {
	Round *continuo.Round     `json:"round"`
	Error *continuo.TurnError `json:"error"`
}

// Decision approves or denies a call.
type Decision struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason,omitempty"` // sent to the model with a denial
}
