package continuo

import (
	"encoding/json"
	"time"
)

// DefaultProject is the project of everything that no other project was named for.
const DefaultProject = "default"

// Kind says what a conversation is the log of.
type Kind string

// The kinds of conversations.
const (
	KindTalk   Kind = ""       // people and models; the default
	KindTask   Kind = "task"   // a task that was given away: its record, who was deployed, what was found
	KindBranch Kind = "branch" // a step of a run that is carried out beside others: a fork of the run's conversation
	KindAgent  Kind = "agent"  // the work of an agent that was deployed for a task
)

// Conversation is one log and what is known about it, as it was when the value was read: LastSeq does not grow with
// the log. [Log.Conversation] reads it again.
type Conversation struct {
	ID        string `json:"id"`
	ProjectID string `json:"project_id"`
	// UserID says whose conversation it is within the project; empty when it is nobody's in particular.
	UserID string `json:"user_id,omitempty"`
	// Key is the caller's own name for the conversation, unique in its project; empty when there is none.
	Key string `json:"key,omitempty"`
	// Kind says what the log is of; each kind has lists of its own. It never changes.
	Kind       Kind   `json:"kind,omitempty"`
	Title      string `json:"title"`
	ActiveMode Mode   `json:"active_mode"`
	// ActiveAgent is the agent that answers in the mode agent where a request names none; empty for none.
	ActiveAgent string          `json:"active_agent,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"` // a JSON object
	// ParentID and ForkSeq say what the conversation was forked from; empty and 0 when it was not.
	ParentID  string    `json:"parent_id,omitempty"`
	ForkSeq   int64     `json:"fork_seq,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"` // of the last append or change
	// ArchivedAt says since when its entries are kept aside; zero when they are not.
	ArchivedAt time.Time `json:"archived_at,omitzero"`
	// LastSeq is the seq of the newest entry, 0 when there is none.
	LastSeq int64 `json:"last_seq"`
	// Lineage lists the conversations whose entries this one begins with, oldest first.
	Lineage []Segment `json:"-"`
}

// Segment is a stretch of another conversation's own entries, ending at Through.
type Segment struct {
	ConversationID string `json:"conversation_id"`
	Through        int64  `json:"through"`
}
