package continuo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// RecordStore reads and writes conversations as they are kept, for copies, archives and checks. No rule
// of the log is asked; who writes records has read them from a store.
type RecordStore interface {
	// ConversationIDs lists the ids of the conversations of all projects in ascending order, those above
	// after, including those that are archived, or deleted while forks begin with their entries.
	ConversationIDs(ctx context.Context, after string, limit int) ([]string, error)
	// Records reads what is kept of a conversation in the order of [RecordPlace], after a place: at least
	// one record if there is one, and then no more than limit, or fewer when they are large. An unknown
	// conversation has none.
	Records(ctx context.Context, conversationID string, after RecordPlace, limit int) ([]Record, error)
	// PutRecords writes records of a conversation in one transaction, each in the place of what is there
	// under its key. A turn that runs gets a lease that has run out. The conversation's own record comes in
	// the first call; its ancestors come before it.
	PutRecords(ctx context.Context, conversationID string, records []Record) error
	// PutArchived is PutRecords for a conversation that has been archived since then and still is. It fails with
	// ErrInvalid when somebody restored it meanwhile, and with ErrNotFound when somebody deleted it: what was
	// removed since must not come back.
	PutArchived(ctx context.Context, conversationID string, since time.Time, records []Record) error
	// Archive takes the entries, receipts and turns out of a conversation, but for the entries that forks
	// begin with, and marks it as archived: entries cannot be read or appended, and turns not begun, until
	// Restore. It fails with a *ConflictError when the conversation has another LastSeq or UpdatedAt than seen
	// has, with a *BusyError while a turn runs, with ErrArchived, and with ErrNotFound. Objects stay.
	Archive(ctx context.Context, seen Conversation, at time.Time) error
	// Restore takes the mark away once PutArchived has brought everything back. It fails with ErrInvalid
	// when an entry is missing, and with ErrNotFound. One that is not archived stays as it is. The archive
	// (see ArchiveObject) is discarded, as it is when an archived conversation is deleted.
	Restore(ctx context.Context, conversationID string) error
	// BlobHashes lists the hashes of all blobs in ascending order, those above after.
	BlobHashes(ctx context.Context, after string, limit int) ([]string, error)
}

// Record is one thing that a store keeps of a conversation; one field is set.
type Record struct {
	Conversation *ConversationRecord `json:"conversation,omitempty"`
	Entry        *Entry              `json:"entry,omitempty"`
	Receipt      *Receipt            `json:"receipt,omitempty"`
	Turn         *TurnRecord         `json:"turn,omitempty"`
	// Damaged says that an entry's stored form does not match its checksum. PutRecords keeps the mark: a copy does not
	// make a damaged entry look sound.
	Damaged bool `json:"damaged,omitempty"`
}

// ConversationRecord is a conversation as it is kept.
type ConversationRecord struct {
	Conversation // with its Lineage, in JSON too
	// Deleted says that a person deleted it, and that forks begin with its entries up to LastSeq.
	Deleted bool
}

type conversationRecordJSON struct {
	Conversation
	Lineage []Segment `json:"lineage,omitempty"`
	Deleted bool      `json:"deleted,omitempty"`
}

// MarshalJSON writes the conversation's fields, its lineage, and whether it is deleted.
func (r ConversationRecord) MarshalJSON() ([]byte, error) {
	return rawjson.Marshal(conversationRecordJSON{r.Conversation, r.Lineage, r.Deleted})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *ConversationRecord) UnmarshalJSON(data []byte) error {
	var wire conversationRecordJSON
	if err := json.Unmarshal(data, &wire); err != nil {
		return fmt.Errorf("conversation record: %w", err)
	}
	*r = ConversationRecord{Conversation: wire.Conversation, Deleted: wire.Deleted}
	r.Lineage = wire.Lineage
	return nil
}

// TurnRecord is a turn, void or not, with what its readers and its owner were told.
type TurnRecord struct {
	Turn
	Signals []TurnSignal `json:"signals,omitempty"`
	Events  []TurnEvent  `json:"events,omitempty"`
}

// RecordPlace is the place of a record: the conversation first, then entries by seq, receipts by key, and
// turns by id. The zero value is before all.
type RecordPlace struct {
	Kind RecordKind
	Seq  int64  // of an entry
	Key  string // of a receipt; the id of a turn
}

// Compare orders places as [RecordStore.Records] does.
func (p RecordPlace) Compare(other RecordPlace) int {
	return cmp.Or(cmp.Compare(p.Kind, other.Kind), cmp.Compare(p.Seq, other.Seq), cmp.Compare(p.Key, other.Key))
}

// RecordKind orders the kinds of records.
type RecordKind int

// The kinds of records, in order.
const (
	RecordConversation RecordKind = iota + 1
	RecordEntry
	RecordReceipt
	RecordTurn
)

// Place is the place of a record.
func (r *Record) Place() RecordPlace {
	switch {
	case r.Entry != nil:
		return RecordPlace{Kind: RecordEntry, Seq: r.Entry.Seq}
	case r.Receipt != nil:
		return RecordPlace{Kind: RecordReceipt, Key: r.Receipt.Key}
	case r.Turn != nil:
		return RecordPlace{Kind: RecordTurn, Key: r.Turn.ID}
	}
	return RecordPlace{Kind: RecordConversation}
}
