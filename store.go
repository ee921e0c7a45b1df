package continuo

import (
	"context"
	"encoding/json"
	"time"
)

// Store keeps conversations and their entries. It knows no rules: the [Log] decides what may be
// written. Every engine passes the suite in store/storetest. All methods are safe for concurrent use,
// and what a method acknowledged survives the end of the process and of the machine. An engine that
// cannot reach its database says ErrUnavailable.
type Store interface {
	ConversationStore
	EntryStore
	BlobStore
	TurnStore
	RunStore
	IndexStore
	DiscardStore
	KeyStore
	LeaseStore
	RecordStore
	// Close waits for writes under way. It may be called twice.
	Close() error
}

// ConversationStore keeps what is known about each conversation.
type ConversationStore interface {
	// Create adds a conversation together with its first entries, all or nothing. LastSeq, CreatedAt,
	// UpdatedAt and Lineage are taken as they are. It fails with ErrExists when the id or the project's
	// key is taken, and with ErrNotFound when a conversation of the Lineage is gone.
	Create(ctx context.Context, conversation Conversation, entries []Entry) error
	// Conversation finds one by id; ErrNotFound.
	Conversation(ctx context.Context, id string) (Conversation, error)
	// ConversationByKey finds one by its project's key; ErrNotFound.
	ConversationByKey(ctx context.Context, projectID, key string) (Conversation, error)
	// Conversations lists a project's conversations, the newest change first.
	Conversations(ctx context.Context, query ConversationQuery) ([]Conversation, error)
	// Update changes a conversation and returns it as it is then; ErrNotFound, and ErrExists when another
	// conversation of the project has the key.
	Update(ctx context.Context, id string, change ConversationChange) (Conversation, error)
	// Delete removes a conversation; ErrNotFound. Entries that a fork still begins with (the conversation
	// stands in the fork's Lineage) stay readable through the fork until the last such fork is deleted.
	// Objects that nothing names any more are discarded; see DiscardStore.
	Delete(ctx context.Context, id string) error
}

// EntryStore keeps the entries that were written to each conversation itself.
type EntryStore interface {
	// Append adds a batch, all or nothing, and sets LastSeq and UpdatedAt (to the newest entry's
	// CreatedAt). It fails with a *ConflictError when LastSeq is not Batch.After, and with ErrNotFound when
	// there is no such conversation, and with ErrArchived.
	Append(ctx context.Context, batch Batch) error
	// Redact puts entries in the place of those with their seqs and ids, which are all there or it fails with
	// ErrNotFound. The events and signals of their turns, their documents in the index and their objects go,
	// but for objects that the new entries name. UpdatedAt becomes the latest of their redactions, or a nanosecond more than it was where that is
	// later. It fails with a *BusyError while one of the turns runs, and
	// with ErrArchived.
	Redact(ctx context.Context, conversationID string, entries []Entry) error
	// Entries reads entries of one conversation, not those that it inherited. Of an archived one they are
	// ErrArchived, unless forks begin with all that was asked for.
	Entries(ctx context.Context, conversationID string, query EntryQuery) ([]Entry, error)
	// EntrySizes adds up the sizes of those entries from seq to seq that a conversation has itself and that are not
	// archived, each as one message, as the log counted them. It does not read what they say.
	EntrySizes(ctx context.Context, conversationID string, from, to int64) (Size, error)
	// Receipt finds what an idempotency key has appended to a conversation; ErrNotFound.
	Receipt(ctx context.Context, conversationID, key string) (Receipt, error)
	// AdvanceReceipt keeps a receipt that no append made, and returns the one that is kept then. One that is there already
	// is replaced only by one with its fingerprint and a higher (Last, First). It changes nothing else of the conversation.
	// ErrNotFound, ErrArchived.
	AdvanceReceipt(ctx context.Context, conversationID string, receipt Receipt) (Receipt, error)
}

// BlobStore keeps bytes under their own SHA-256.
type BlobStore interface {
	// PutBlob keeps data; doing so again changes nothing.
	PutBlob(ctx context.Context, hash string, data []byte) error
	// Blob reads what PutBlob kept; ErrNotFound.
	Blob(ctx context.Context, hash string) ([]byte, error)
}

// ConversationQuery selects a page of conversations, ordered by UpdatedAt and then ID, both descending.
type ConversationQuery struct {
	ProjectID string
	UserID    string            // "": of any user, and of none
	Labels    map[string]string // that the metadata must have; see LabelsOf
	Kind      Kind
	Archived  bool // list those that are archived instead of the others
	Limit     int  // at least 1
	// Before continues after the last conversation of the page before; zero for the first page.
	Before ConversationCursor
}

// ConversationCursor is a place in the list of conversations.
type ConversationCursor struct {
	UpdatedAt time.Time
	ID        string
}

// ConversationChange says what to change; nil fields stay as they are.
type ConversationChange struct {
	Title       *string
	ActiveMode  *Mode
	ActiveAgent *string
	Metadata    json.RawMessage // a JSON object
	Key         *string         // "" removes it
	UserID      *string         // "" takes the conversation from its user
	// Claim gives the conversation to a user unless it has one already: the result says whose it is.
	Claim *string
	// UpdatedAt is when the conversation last changed, for what was imported with its times. Default, and at the latest: now.
	UpdatedAt time.Time
}

// Batch is what one commit adds to one conversation.
type Batch struct {
	ConversationID string
	After          int64 // the LastSeq that the batch was validated against
	Entries        []Entry
	Receipts       []Receipt
	// Turns are updates of turns that are committed together with the entries, or refused together: one
	// that is refused fails the batch as it fails UpdateTurn. Their signals are not read.
	Turns []TurnUpdate
	// Runs are changes of runs that Entries tell of; see RunChanges. One of a run that is not there is passed over.
	Runs []RunChange
}

// Receipt remembers what an idempotency key appended.
type Receipt struct {
	Key         string `json:"key"`
	Fingerprint string `json:"fingerprint"` // of what was asked for, to tell a retry from another request with the same key
	First       int64  `json:"first"`
	Last        int64  `json:"last"`
}

// ChangeNotifier is a store that other processes write to, and that can tell of it. What it tells are hints: some
// may be missing, and whoever must know looks at the store now and then.
type ChangeNotifier interface {
	// WatchChanges tells changed, from one goroutine, which conversations other processes have changed, until ctx is
	// done. Nil stands for any: so it begins whenever it has been out of touch. While it is out of touch
	// it tells lost, once.
	WatchChanges(ctx context.Context, changed func(conversationIDs []string), lost func())
}

// EntryQuery selects entries with From <= seq <= To, ascending or, with Backward, descending, at most
// Limit of them (at least 1). UsersOnly keeps user entries that are not Hidden, and OutputRef keeps the
// entry with that ref; an engine serves both by an index and reads no other rows for them.
//
// MaxBytes bounds the stored form of the entries together: the page ends before the entry that would exceed it. Where that
// is the first one, the query fails with a *LargeEntryError, and nothing of the entry has been read. 0: no bound.
type EntryQuery struct {
	From, To  int64
	Backward  bool
	Limit     int
	MaxBytes  int64
	UsersOnly bool
	OutputRef string
}
