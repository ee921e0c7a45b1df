package continuo

import (
	"encoding/json"
	"time"
)

// DefaultProject is the project of a request that names none.
const DefaultProject = "default"

// Kind says what a conversation records.
type Kind string

// The kinds of conversations.
const (
	KindUser   Kind = ""       // users and models; the default
	KindTask   Kind = "task"   // a delegated task: its record, the deployed agents and their findings
	KindBranch Kind = "branch" // a step of a run that is executed in parallel with others: a fork of the run's conversation
	KindAgent  Kind = "agent"  // the work of an agent that was deployed for a task
	KindSide   Kind = "side"   // a client's call beside its conversation, such as for a title; ParentID names the conversation
)

// Conversation is one log and its metadata, as a snapshot: LastSeq does not grow with the log. [Log.Conversation] reads
// it again.
type Conversation struct {
	ID        string `json:"id"`
	ProjectID string `json:"project_id"`
	// UserID is the user of the project who owns the conversation; empty when it has no owner.
	UserID string `json:"user_id,omitempty"`
	// Key is the client's own name for the conversation, unique in its project; empty for none.
	Key string `json:"key,omitempty"`
	// Kind says what the log records; conversations of each kind are listed separately. It never changes.
	Kind       Kind   `json:"kind,omitempty"`
	Title      string `json:"title"`
	ActiveMode Mode   `json:"active_mode"`
	// ActiveAgent is the agent that answers in mode agent when a request names none; empty for none.
	ActiveAgent string          `json:"active_agent,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"` // a JSON object
	// ParentID and ForkSeq name the conversation and the seq that this one was forked from; empty and 0 when it is no
	// fork.
	ParentID  string    `json:"parent_id,omitempty"`
	ForkSeq   int64     `json:"fork_seq,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"` // of the last append or change
	// ArchivedAt is when the conversation was archived; zero when it is not archived.
	ArchivedAt time.Time `json:"archived_at,omitzero"`
	// LastSeq is the seq of the newest entry, 0 when there is none.
	LastSeq int64 `json:"last_seq"`
	// Revision changes whenever entries that the conversation has stored change: by a redaction, or because records of
	// it are put back. An append does not change it.
	Revision int64 `json:"-"`
	// Lineage lists the conversations whose entries this one begins with, the oldest first.
	Lineage []Segment `json:"-"`
}

// Segment is a range of another conversation's own entries, ending at Through.
type Segment struct {
	ConversationID string `json:"conversation_id"`
	Through        int64  `json:"through"`
}
