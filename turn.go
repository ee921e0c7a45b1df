package continuo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Turn is the record of a turn, running or ended: one user input and everything until its final answer. The messages
// are in the log; the turn says which process may write them, and how it ended.
type Turn struct {
	ID             string    `json:"id"`
	ConversationID string    `json:"conversation_id"`
	State          TurnState `json:"state"`
	TurnRequest
	TurnEnd
	// Owner is the process that runs the turn, Fence the fencing token of its lease: each lease of a conversation has a
	// higher one than those before, and a write with any but the newest is refused.
	Owner string `json:"owner,omitempty"`
	Fence int64  `json:"fence,omitempty"`
	// LeaseUntil is when the running turn's lease expires, by the store's clock; each renewal changes it. Zero when the
	// owner released the lease. LeaseExpired says whether it has expired by the same clock.
	LeaseUntil   time.Time `json:"lease_until,omitzero"`
	LeaseExpired bool      `json:"lease_expired,omitempty"`
	// LastEvent is the id of the newest stored event; 0 when there is none.
	LastEvent int64     `json:"last_event"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// TurnState is the state of a turn.
type TurnState string

// The states of a turn. A void turn ended before it wrote to the log, and is treated as if it had never begun.
const (
	TurnRunning  TurnState = "running"
	TurnFinished TurnState = "finished"
	TurnFailed   TurnState = "failed"
	TurnVoid     TurnState = "void"
)

// TurnRequest is the request that began a turn, so that another process can resume it.
type TurnRequest struct {
	Mode    Mode   `json:"mode,omitempty"`
	AgentID string `json:"agent_id,omitempty"`
	// RunID, WorkflowID and NodeID name the step of a workflow's run that the turn executes; empty for none.
	RunID      string `json:"run_id,omitempty"`
	WorkflowID string `json:"workflow_id,omitempty"`
	NodeID     string `json:"node_id,omitempty"`
	View       string `json:"view,omitempty"`
	Model      string `json:"model,omitempty"`
	// Resumes is the id of the turn that this one continues; empty for a turn with its own input.
	Resumes string `json:"resumes,omitempty"`
	// Fingerprint is a hash of the input of a turn with an idempotency key, to distinguish a retry from another
	// request.
	Fingerprint string `json:"fingerprint,omitempty"`
	// KeyID is the API key of the caller that began the turn; empty for none. Its requests are charged to it.
	KeyID string `json:"key_id,omitempty"`
}

// TurnEnd is how a turn ended.
type TurnEnd struct {
	Reason FailureReason `json:"reason,omitempty"` // of a failed turn
	Usage  Usage         `json:"usage"`
}

// TurnEvent is one event of a turn as it is stored for later readers. Data is a JSON object that only package turn
// reads, without surrounding whitespace; the store returns it byte for byte.
type TurnEvent struct {
	ID   int64           `json:"id"` // from 1, ascending; there may be gaps
	Data json.RawMessage `json:"data"`
}

// TurnUpdate is a write by the owner of a turn's lease. It is refused with ErrLeaseLost unless the turn runs with
// exactly this fence.
type TurnUpdate struct {
	ConversationID, TurnID string
	Fence                  int64
	// Events are appended; their ids are above the turn's LastEvent and ascending.
	Events []TurnEvent
	// Lease renews the lease for this long from now; 0 leaves it unchanged, and a negative value releases it.
	Lease time.Duration
	// Mode becomes the conversation's active mode, Agent its active agent; "" leaves them unchanged.
	Mode  Mode
	Agent string
	// State ends the turn; "" leaves it running. End says how it ended.
	State TurnState
	End   TurnEnd
	// Charges are what requests to models used, and are added to what was spent in the same commit. With a State of
	// TurnFinished or TurnFailed the turn is added to those that ended; see [LedgerStore].
	Charges []Spending
	// Blobs are stored in the same commit, as PutBlob does. In a batch they are those of Batch.Blobs, and this is empty.
	Blobs []Blob
	// SignalsSeen is how many of the turn's signals the owner has read; UpdateTurn returns the others.
	SignalsSeen int
}

// TurnBegin begins a turn in the commit of a [Batch]: the turn runs, and its Owner has the conversation's lease. The
// batch fails with ErrExists when a turn of that id exists that is not void, and else with a *BusyError while another
// turn of the conversation runs, whether its lease has expired or not: both come before a *ConflictError.
type TurnBegin struct {
	// Turn has the turn's ID, ConversationID, Owner and TurnRequest; the other fields are ignored.
	Turn  Turn
	Lease time.Duration // how long the lease lasts
	// Events are the turn's first events, with ascending ids from 1 up; Mode and Agent are as in TurnUpdate.
	Events []TurnEvent
	Mode   Mode
	Agent  string
	// Begun is the turn with the fields that the store sets: State, Fence, LeaseUntil, StartedAt and LastEvent. It is
	// valid when Append returns nil.
	Begun Turn
}

// TurnSignal is a message to the owner of a turn, in whichever process it runs.
type TurnSignal struct {
	Kind SignalKind `json:"kind"`
	// ToolCallID is the call that is approved or denied; of SignalAllow and SignalDeny. Asked is the id of the event
	// that asked for the decision, because a later call may have the same ToolCallID.
	ToolCallID string `json:"tool_call_id,omitempty"`
	Asked      int64  `json:"asked,omitempty"`
	// Reason is sent to the model as the reason for the denial; it may be empty.
	Reason string `json:"reason,omitempty"`
}

// SignalKind is the kind of a signal.
type SignalKind string

// The signals.
const (
	SignalCancel    SignalKind = "cancel"    // a person cancels the turn
	SignalInterrupt SignalKind = "interrupt" // another turn replaces it
	SignalAllow     SignalKind = "allow"     // a call that waits for a decision is approved
	SignalDeny      SignalKind = "deny"      // it is denied
)

// TurnStore keeps turns, their leases and their events; a turn begins with a [TurnBegin] in a batch. Lease times are by the store's own clock, which may be set back
// or forward: package turn decides whether an owner is gone.
type TurnStore interface {
	// TakeTurn gives the lease of a running turn to another owner, with a new fence, if the turn still has the fence of
	// seen; ErrLeaseLost.
	TakeTurn(ctx context.Context, seen Turn, owner string, lease time.Duration) (Turn, error)
	// UpdateTurn applies an update without entries; see Batch.Turns for updates with entries. It fails with
	// ErrLeaseLost, also for an unknown turn, and with ErrInvalid when the events do not follow LastEvent.
	UpdateTurn(ctx context.Context, update TurnUpdate) ([]TurnSignal, error)
	// SignalTurn stores a signal for the owner of a running turn. It fails with ErrNotRunning when the turn has ended,
	// and with ErrNotFound.
	SignalTurn(ctx context.Context, conversationID, turnID string, signal TurnSignal) error
	// Turn finds a turn, void or not; ErrNotFound.
	Turn(ctx context.Context, conversationID, turnID string) (Turn, error)
	// Turns lists a conversation's turns that are not void, the newest first.
	Turns(ctx context.Context, query TurnQuery) ([]Turn, error)
	// RunningTurns lists running turns of all conversations, ordered by the end of their leases, the earliest first.
	RunningTurns(ctx context.Context, limit int) ([]Turn, error)
	// TurnEvents reads a turn's events with ids above after, in order, at least one if there is one. A page ends with
	// the write that brings it to limit events or to about 256 KiB: events that were written together are in one page.
	TurnEvents(ctx context.Context, conversationID, turnID string, after int64, limit int) ([]TurnEvent, error)
	// PruneTurnEvents removes the events and signals of up to limit turns that ended before a time, and returns the
	// number of turns. The turns stay, with a LastEvent of 0.
	PruneTurnEvents(ctx context.Context, endedBefore time.Time, limit int) (int, error)
}

// TurnQuery selects a page of a conversation's turns, ordered by StartedAt and then ID, both descending.
type TurnQuery struct {
	ConversationID string
	Limit          int // at least 1
	// Before continues after the last turn of the previous page; zero for the first page.
	Before TurnCursor
}

// TurnCursor is a position in the list of turns.
type TurnCursor struct {
	StartedAt time.Time
	ID        string
}

// BusyError names the turn that runs in a conversation.
type BusyError struct{ Turn Turn }

func (e *BusyError) Error() string {
	return fmt.Sprintf("conversation %s: %s: %s; follow it, cancel it, or wait for it", e.Turn.ConversationID, ErrBusy, e.Turn.ID)
}

// Is makes errors.Is match ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }
