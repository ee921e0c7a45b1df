package turn

import (
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// Kind says what an event tells.
type Kind string

// The kinds of events, in the order in which a turn gives them: one Started, and another one each time that a process
// takes the turn up from one that is gone ([Keeper.TakeUp]); for each round a Planned,
// any number of TextDelta, ReasoningDelta and CallDelta, an Answered, and for each call a Called, perhaps
// an Asked and a Decided, and a ToolDone; at the end one Finished or one Failed. Where the provider refuses
// the form of a request that another dialect may mend, a Rephrased comes after the round's Planned, and then
// the Planned of the request in that dialect. Where the model fails
// before it has shown anything and there is a fallback, a FellBack comes after the round's Planned, and
// then the fallback's Planned.
const (
	Started        Kind = "started"
	Planned        Kind = "planned"
	TextDelta      Kind = "text"
	ReasoningDelta Kind = "reasoning"
	CallDelta      Kind = "call_delta"
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

// Event is one step of a turn. Live and read again later it is the same.
type Event struct {
	// ID is above those of the turn's earlier events. There are gaps where a program was killed.
	ID     int64
	Kind   Kind
	TurnID string
	// Text is what a TextDelta or ReasoningDelta adds. A ReasoningDelta without text carries the provider's
	// Signature of the reasoning so far.
	Text      string
	Signature string
	// Delta is a piece of a call; of CallDelta.
	Delta *model.ToolCallDelta
	// Call is the call that is taken up (Called), waits for a person's decision (Asked), or got one
	// (Decided), under the tool's own name.
	Call *continuo.ToolCall
	// Until is when the call is denied if nobody decides; of Asked. Zero: it waits without an end.
	Until time.Time
	// Decision is what was decided; of Decided.
	Decision *Decision
	// Plan is what the round's request was built by, without its items and messages, and Round what is
	// known of the request so far; of Planned. Finished and Failed have the Plan of the last round.
	Plan  *continuo.Plan
	Round *continuo.Round
	// Entry is what was appended: the user's entry (Started), an answer (Answered, Finished, Failed) or a
	// result (ToolDone). A turn that resumes another one may start without an entry.
	Entry *continuo.Entry
	// Attempt is what failed; of FellBack and Rephrased.
	Attempt *Attempt
	// Usage is the sum over the turn's rounds; of Finished and Failed.
	Usage continuo.Usage
}

// IsEnd reports whether the event is the last one of its turn.
func (e *Event) IsEnd() bool { return e.Kind == Finished || e.Kind == Failed }

// Attempt is a request that failed before it showed anything, in whose place another one was made. It is no
// entry of the log.
type Attempt struct {
	Round *continuo.Round     `json:"round"`
	Error *continuo.TurnError `json:"error"`
}

// Decision says whether a call that was asked for may run.
type Decision struct {
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason,omitempty"` // what the model is told of a denied call
}
