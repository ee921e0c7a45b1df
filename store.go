package continuo

import (
	"context"
	"encoding/json"
	"time"
)

// Store keeps conversations and their entries. It checks no rules: the [Log] decides what may be written. All methods
// are safe for concurrent use, and acknowledged writes survive the end of the process and of the machine. An engine that
// cannot reach its database returns ErrUnavailable.
//
// It is what a Log needs. An engine stores more, as the packages that use it declare: package maintenance's Store is all of
// it, and every engine passes its suite, store/storetest.
type Store interface {
	ConversationStore
	EntryStore
	BlobStore
	TurnStore
	RunStore
	DiscardStore
	LeaseStore
	ActivityStore
	LedgerStore
	// Close waits for writes in progress. It may be called twice.
	Close() error
}

// ConversationStore keeps the fields of conversations, without their entries.
type ConversationStore interface {
	// Create adds a conversation together with its first entries, all or nothing. LastSeq, CreatedAt, UpdatedAt and
	// Lineage are stored as given. It fails with ErrExists when the id or the project's key is taken, and with
	// ErrNotFound when a conversation of the Lineage is gone.
	Create(ctx context.Context, conversation Conversation, entries []Entry) error
	// Conversation finds a conversation by id; ErrNotFound.
	Conversation(ctx context.Context, id string) (Conversation, error)
	// ConversationByKey finds a conversation by its project and key; ErrNotFound.
	ConversationByKey(ctx context.Context, projectID, key string) (Conversation, error)
	// ConversationsByID finds those of some conversations that exist, in any order.
	ConversationsByID(ctx context.Context, ids []string) ([]Conversation, error)
	// Conversations lists a project's conversations, the most recently changed first.
	Conversations(ctx context.Context, query ConversationQuery) ([]Conversation, error)
	// Update changes a conversation and returns the result; ErrNotFound, and ErrExists when another conversation of the
	// project has the key. The index has no word of a title that was replaced.
	Update(ctx context.Context, id string, change ConversationChange) (Conversation, error)
	// Delete removes a conversation; ErrNotFound. Entries that a fork inherits (the conversation is in the fork's
	// Lineage) stay readable through the fork until the last such fork is deleted. Objects without any remaining
	// reference are discarded; see DiscardStore.
	Delete(ctx context.Context, id string) error
}

// EntryStore keeps each conversation's own entries.
type EntryStore interface {
	// Append adds a batch, all or nothing, and sets LastSeq and UpdatedAt (to the newest entry's CreatedAt). It fails
	// with a *ConflictError when LastSeq is not Batch.After, with ErrNotFound when the conversation does not exist, and
	// with ErrArchived. A batch that begins a turn may also fail as [TurnBegin] says.
	Append(ctx context.Context, batch Batch) error
	// Redact replaces entries by those with the same seqs and ids; ErrNotFound when one does not exist. It removes the
	// events and signals of their turns, their documents in the index and their objects, except objects that the new
	// entries refer to. UpdatedAt becomes the latest of their redaction times, or one nanosecond more than before where
	// that is later. It fails with a *BusyError while one of the turns runs, and with ErrArchived.
	Redact(ctx context.Context, conversationID string, entries []Entry) error
	// Entries reads a conversation's own entries, not those that it inherited. For an archived one it fails with
	// ErrArchived, unless forks inherit all entries of the query.
	Entries(ctx context.Context, conversationID string, query EntryQuery) ([]Entry, error)
	// EntriesAt reads single entries, of any conversations: the result has one for each place, in their order, with Seq 0
	// where the store has none. It has fewer, perhaps none, where the stored form of the next one would exceed maxBytes
	// (more than 0) in total.
	EntriesAt(ctx context.Context, places []EntryPlace, maxBytes int64) ([]Entry, error)
	// Revision returns a conversation's Revision; ErrNotFound, and ErrArchived.
	Revision(ctx context.Context, conversationID string) (int64, error)
	// EntrySizes adds up the sizes of a conversation's own entries in a range of seqs, without archived ones, each as
	// one message, as counted by the log. It does not read their content.
	EntrySizes(ctx context.Context, conversationID string, from, to int64) (Size, error)
	// Receipt returns the record of what an idempotency key appended to a conversation; ErrNotFound.
	Receipt(ctx context.Context, conversationID, key string) (Receipt, error)
	// AdvanceReceipt stores a receipt that belongs to no append, and returns the one that is stored then. An existing
	// receipt is replaced only by one with its fingerprint and a higher (Last, First). The conversation does not change
	// otherwise. ErrNotFound, ErrArchived.
	AdvanceReceipt(ctx context.Context, conversationID string, receipt Receipt) (Receipt, error)
}

// BlobStore stores data under its SHA-256 (content-addressed).
type BlobStore interface {
	// PutBlob stores data; storing it again changes nothing.
	PutBlob(ctx context.Context, hash string, data []byte) error
	// Blob reads data that PutBlob stored; ErrNotFound.
	Blob(ctx context.Context, hash string) ([]byte, error)
}

// ConversationQuery selects a page of conversations, ordered by what Sort says and then ID, both descending.
type ConversationQuery struct {
	ProjectID string
	UserID    string            // "": of any user or none
	Labels    map[string]string // that the metadata must have (a filter); see LabelsOf
	Kind      Kind
	Archived  bool // lists archived conversations instead of the others
	// Filters; the zero value selects all. Since is the earliest UpdatedAt, Model a model that answered in the conversation
	// (see UsageCount); Since counts in whole seconds.
	Mode     Mode
	Model    string
	ParentID string
	// KeyPrefix is what the key begins with.
	KeyPrefix string
	State     ActivityState
	Since     time.Time
	// Sort is the order. All but the default read every conversation that the filters select.
	Sort  ConversationSort
	Limit int // at least 1
	// Before continues after the last conversation of the previous page; zero for the first page.
	Before ConversationCursor
}

// ConversationCursor is a position in the list of conversations.
type ConversationCursor struct {
	UpdatedAt time.Time
	ID        string
	// Value is what the list is sorted by; 0 where that is UpdatedAt. See [ConversationSort.SortValue].
	Value int64
}

// ConversationSort is an order of a list of conversations, the highest value first.
type ConversationSort string

// The orders: by UpdatedAt, by CreatedAt in nanoseconds since 1970, by the input and output tokens of the conversation's own
// requests, and by their known cost in billionths.
const (
	SortUpdated ConversationSort = ""
	SortCreated ConversationSort = "created"
	SortTokens  ConversationSort = "tokens"
	SortCost    ConversationSort = "cost"
)

// SortValue is what a conversation is sorted by, from the usage that it has.
func (s ConversationSort) SortValue(conversation Conversation, usage []UsageCount) (value int64) {
	if s == SortCreated {
		return conversation.CreatedAt.UnixNano()
	}
	for _, count := range usage {
		switch s {
		case SortTokens:
			value += count.InputTokens + count.OutputTokens
		case SortCost:
			value += count.CostNano
		}
	}
	return value
}

// ConversationChange is a partial update; nil fields do not change.
type ConversationChange struct {
	Title       *string
	ActiveMode  *Mode
	ActiveAgent *string
	Metadata    json.RawMessage // a JSON object
	Key         *string         // "" removes it
	UserID      *string         // "" removes the user
	// Claim assigns the conversation to a user unless it has one: the result says who owns it.
	Claim *string
	// UpdatedAt is the change time of an imported conversation. Default, and at the latest: now.
	UpdatedAt time.Time
}

// Batch is one commit to one conversation.
type Batch struct {
	ConversationID string
	After          int64 // the LastSeq against which the batch was validated
	Entries        []Entry
	Receipts       []Receipt
	// Prefixes are those of this conversation that the entries complete. A redaction removes those of the entry and of
	// everything after it, in forks too; deleting and archiving remove all.
	Prefixes []Prefix
	// Turns are updates of turns that are committed or refused together with the entries: a refused one fails the batch
	// as it fails UpdateTurn. Their signals are not read.
	Turns []TurnUpdate
	// Runs are the changes that Entries make to runs; see RunChanges. A change of a run that does not exist is ignored.
	Runs []RunChange
	// Begin is a turn that begins with the entries, of which there may be none. Such a batch has no Turns. Default none.
	Begin *TurnBegin
	// Create is the conversation where the batch creates it: After is 0, and the conversation begins with no other's
	// entries. Only a batch with Begin has it. The batch then fails as ConversationStore.Create does. Default none.
	Create *Conversation
	// Blobs are stored with the entries, as PutBlob does.
	Blobs []Blob
}

// Blob is data and its SHA-256 in hex.
type Blob struct {
	Hash string
	Data []byte
}

// Receipt is an idempotency record: what a key appended.
type Receipt struct {
	Key         string `json:"key"`
	Fingerprint string `json:"fingerprint"` // of the request, to distinguish a retry from another request with the same key
	First       int64  `json:"first"`
	Last        int64  `json:"last"`
}

// ChangeNotifier is a store that can report the writes of other processes. Its reports are hints and may be lost, so a
// reader must also poll.
type ChangeNotifier interface {
	// WatchChanges calls changed, from one goroutine, with the conversations that other processes changed, until ctx is
	// done. Nil means any conversation: this is the first call after every (re)connection. It calls lost once when the
	// connection is lost.
	WatchChanges(ctx context.Context, changed func(conversationIDs []string), lost func())
}

// EntryPlace is the place of an entry in the conversation that has it as its own.
type EntryPlace struct {
	ConversationID string
	Seq            int64
}

// EntryQuery selects entries with From <= seq <= To, ascending or, with Backward, descending, at most Limit of them (at
// least 1). UsersOnly selects user entries that are not Hidden, and OutputRef the entry with that ref; an engine serves
// both from an index and reads no other rows for them.
//
// MaxBytes bounds the total stored form of the entries: the page ends before the entry that would exceed it. Where that
// is the first one, the query fails with a *LargeEntryError and reads nothing of the entry. 0: no bound.
type EntryQuery struct {
	From, To  int64
	Backward  bool
	Limit     int
	MaxBytes  int64
	UsersOnly bool
	OutputRef string
}
