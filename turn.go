package continuo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Turn is what is known about one user input and everything until its final answer, while it runs and
// afterwards. What was said is in the log; this is who may write it, and how it ended.
type Turn struct {
	ID             string    `json:"id"`
	ConversationID string    `json:"conversation_id"`
	State          TurnState `json:"state"`
	TurnRequest
	TurnEnd
	// Owner is the process that runs the turn, Fence the number of its lease: each lease of a conversation
	// has a higher one than those before, and a write with any but the newest is refused.
	Owner string `json:"owner,omitempty"`
	Fence int64  `json:"fence,omitempty"`
	// LeaseUntil is when the running turn's lease ends, by the store's clock: each renewal changes it. Zero when the owner
	// gave the lease back. LeaseExpired says that the time has come, by the same clock.
	LeaseUntil   time.Time `json:"lease_until,omitzero"`
	LeaseExpired bool      `json:"lease_expired,omitempty"`
	// LastEvent is the id of the newest event that is kept; 0 when there is none.
	LastEvent int64     `json:"last_event"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// TurnState says how far a turn is.
type TurnState string

// The states of a turn. A void turn ended before anything of it stood in the log: as if it had never been.
const (
	TurnRunning  TurnState = "running"
	TurnFinished TurnState = "finished"
	TurnFailed   TurnState = "failed"
	TurnVoid     TurnState = "void"
)

// TurnRequest is what a turn was begun with, so that it can be taken up again.
type TurnRequest struct {
	Mode    Mode   `json:"mode,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
	// RunID, WorkflowID and NodeID say which step of a workflow's run the turn carries out; empty for none.
	RunID      string `json:"run_id,omitempty"`
	WorkflowID string `json:"workflow_id,omitempty"`
	NodeID     string `json:"node_id,omitempty"`
	View       string `json:"view,omitempty"`
	Model      string `json:"model,omitempty"`
	// Resumes is the id of the turn that this one goes on with; empty for a turn with an input of its own.
	Resumes string `json:"resumes,omitempty"`
	// Fingerprint is of the input of a turn with an idempotency key, to tell a retry from another request.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// TurnEnd is how a turn ended.
type TurnEnd struct {
	Reason FailureReason `json:"reason,omitempty"` // of a failed turn
	Usage  Usage         `json:"usage"`
}

// TurnEvent is one step of a turn as it is kept for readers who come later. Data is a JSON object that
// only package turn reads; nothing stands around the object, and it comes back byte for byte.
type TurnEvent struct {
	ID   int64           `json:"id"` // from 1, ascending; there may be gaps
	Data json.RawMessage `json:"data"`
}

// TurnUpdate is what the owner of a turn's lease writes. It is refused with ErrLeaseLost unless the turn
// runs under just this fence.
type TurnUpdate struct {
	ConversationID, TurnID string
	Fence                  int64
	// Events are added; their ids are above the turn's LastEvent and ascending.
	Events []TurnEvent
	// Lease renews the lease for so long from now; 0 leaves it as it is, and less than 0 gives it back.
	Lease time.Duration
	// Mode becomes the conversation's active mode, Agent its active agent; "" leaves them as they are.
	Mode  Mode
	Agent string
	// State ends the turn; "" lets it run. End says how it ended.
	State TurnState
	End   TurnEnd
	// SignalsSeen is how many of the turn's signals the owner knows; UpdateTurn returns the others.
	SignalsSeen int
}

// TurnSignal is what somebody tells the owner of a turn, wherever it runs.
type TurnSignal struct {
	Kind SignalKind `json:"kind"`
	// ToolCallID is the call that is decided on; of SignalAllow and SignalDeny. Asked is the id of the event
	// with which the turn asked: a later call may have the same ToolCallID, and is not meant.
	ToolCallID string `json:"tool_call_id,omitempty"`
	Asked      int64  `json:"asked,omitempty"`
	// Reason is what the model is told of a denied call; it may be empty.
	Reason string `json:"reason,omitempty"`
}

// SignalKind says what a signal asks for.
type SignalKind string

// The signals.
const (
	SignalCancel    SignalKind = "cancel"    // a person stops the turn
	SignalInterrupt SignalKind = "interrupt" // another turn takes its place
	SignalAllow     SignalKind = "allow"     // a call that waits for a decision may run
	SignalDeny      SignalKind = "deny"      // it may not
)

// TurnStore keeps turns, who may write them, and their events. Leases are written by the store's own clock, which may be
// set back or forward: whether an owner is gone is decided in package turn.
type TurnStore interface {
	// BeginTurn adds a running turn and gives Owner the conversation's lease. Fence, StartedAt and LastEvent
	// are set by the store. It fails with a *BusyError while another turn of the conversation runs, whether
	// its lease has expired or not, with ErrExists when there is a turn of that id that is not void, and
	// with ErrNotFound when there is no such conversation, and with ErrArchived.
	BeginTurn(ctx context.Context, turn Turn, lease time.Duration) (Turn, error)
	// TakeTurn gives the lease of a running turn to another owner, with a new fence, if it still has the
	// fence that the caller saw; ErrLeaseLost.
	TakeTurn(ctx context.Context, seen Turn, owner string, lease time.Duration) (Turn, error)
	// UpdateTurn carries out an update that comes without entries; see Batch.Turns for those with. Besides
	// ErrLeaseLost, which an unknown turn is too, it fails with ErrInvalid when the events do not follow
	// LastEvent.
	UpdateTurn(ctx context.Context, update TurnUpdate) ([]TurnSignal, error)
	// SignalTurn leaves a signal for the owner of a running turn. It fails with ErrNotRunning when the turn
	// has ended and with ErrNotFound.
	SignalTurn(ctx context.Context, conversationID, turnID string, signal TurnSignal) error
	// Turn finds one, void or not; ErrNotFound.
	Turn(ctx context.Context, conversationID, turnID string) (Turn, error)
	// Turns lists a conversation's turns that are not void, the newest first.
	Turns(ctx context.Context, query TurnQuery) ([]Turn, error)
	// RunningTurns lists running turns of all conversations, those first whose lease ended first.
	RunningTurns(ctx context.Context, limit int) ([]Turn, error)
	// TurnEvents reads a turn's events with ids above after, in order, at least one if there is one. A page ends with
	// the write that brings it to limit events or to about 256 KiB: what was written together is read together.
	TurnEvents(ctx context.Context, conversationID, turnID string, after int64, limit int) ([]TurnEvent, error)
	// PruneTurnEvents removes the events and signals of up to limit turns that ended before a time, and
	// returns of how many. Turns stay, with a LastEvent of 0.
	PruneTurnEvents(ctx context.Context, endedBefore time.Time, limit int) (int, error)
}

// TurnQuery selects a page of a conversation's turns, ordered by StartedAt and then ID, both descending.
type TurnQuery struct {
	ConversationID string
	Limit          int // at least 1
	// Before continues after the last turn of the page before; zero for the first page.
	Before TurnCursor
}

// TurnCursor is a place in the list of turns.
type TurnCursor struct {
	StartedAt time.Time
	ID        string
}

// BusyError says which turn holds a conversation.
type BusyError struct{ Turn Turn }

func (e *BusyError) Error() string {
	return fmt.Sprintf("conversation %s: %s: %s; follow it, cancel it, or wait for it", e.Turn.ConversationID, ErrBusy, e.Turn.ID)
}

// Is makes it an ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }
