package turn

import continuo "github.com/continuo-log/continuo"

// Kind says what an event tells.
type Kind string

// The kinds of events, in the order in which a turn gives them: one Started; for each round a Planned,
// any number of TextDelta and ReasoningDelta, an Answered, and a ToolDone for each call; at the end one
// Finished or one Failed. Where the model fails before it has shown anything and there is a fallback, a
// FellBack comes after the round's Planned, and then the fallback's Planned.
const (
	Started        Kind = "started"
	Planned        Kind = "planned"
	TextDelta      Kind = "text"
	ReasoningDelta Kind = "reasoning"
	FellBack       Kind = "fell_back"
	Answered       Kind = "answered"
	ToolDone       Kind = "tool_done"
	Finished       Kind = "finished"
	Failed         Kind = "failed"
)

// Event is one step of a turn.
type Event struct {
	Kind   Kind
	TurnID string
	// Text is the new text of a delta.
	Text string
	// Plan is what the round's request was built by; of Planned.
	Plan *continuo.Plan
	// Entry is what was appended: the user's entry (Started), an answer (Answered, Finished, Failed) or a
	// result (ToolDone).
	Entry *continuo.Entry
	// Attempt is what failed; of FellBack.
	Attempt *Attempt
	// Usage is the sum over the turn's rounds; of Finished and Failed.
	Usage continuo.Usage
}

// Attempt is a request that failed before it showed anything, in whose place the fallback was asked. It
// is no entry of the log.
type Attempt struct {
	Round *continuo.Round
	Error *continuo.TurnError
}
