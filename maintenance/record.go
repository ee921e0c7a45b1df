package maintenance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// RecordStore reads and writes conversations in their stored form, for copies, archives and checks. It does not check
// the rules of the log; callers write only records that they read from a store.
type RecordStore interface {
	// ConversationIDs lists the ids of the conversations of all projects above after, in ascending order, including
	// those that are archived, and deleted ones whose entries forks still inherit.
	ConversationIDs(ctx context.Context, after string, limit int) ([]string, error)
	// Records reads the records of a conversation after a position, in the order of [RecordPosition]: at least one if
	// there is one, at most limit, and fewer when they are large. An unknown conversation has none.
	Records(ctx context.Context, conversationID string, after RecordPosition, limit int) ([]Record, error)
	// PutRecords writes records of a conversation in one transaction, each replacing the one with its key. A running
	// turn gets an expired lease. The first call includes the conversation's own record; its ancestors must be written
	// before.
	PutRecords(ctx context.Context, conversationID string, records []Record) error
	// PutArchived is PutRecords for a conversation that was archived at since and still is. It fails with ErrInvalid
	// when the conversation has been restored meanwhile, and with ErrNotFound when it has been deleted: data that was
	// removed since must not come back.
	PutArchived(ctx context.Context, conversationID string, since time.Time, records []Record) error
	// Archive removes the entries, receipts, turns and prefixes of a conversation, except marks (see continuo.Receipt.IsMark)
	// and entries that forks inherit, and marks it as archived: until Restore, its entries cannot be read or appended and no turn can begin. It fails with a
	// *ConflictError when LastSeq or UpdatedAt differ from those of seen, with a *BusyError while a turn runs, with
	// ErrArchived, and with ErrNotFound. Objects stay.
	Archive(ctx context.Context, seen continuo.Conversation, at time.Time) error
	// Restore removes the mark once PutArchived has written everything back. It fails with ErrInvalid when an entry is
	// missing, and with ErrNotFound. It does not change a conversation that is not archived. The archive (see
	// ArchiveObject) is discarded, as it is when an archived conversation is deleted.
	Restore(ctx context.Context, conversationID string) error
	// RemakeRuns rebuilds the index of a conversation's runs from its entries; ErrNotFound.
	RemakeRuns(ctx context.Context, conversationID string) error
	// BlobHashes lists the hashes of all blobs above after, in ascending order.
	BlobHashes(ctx context.Context, after string, limit int) ([]string, error)
}

// Record is one row that a store keeps of a conversation; exactly one pointer is set.
type Record struct {
	Conversation *ConversationRecord `json:"conversation,omitempty"`
	Entry        *continuo.Entry     `json:"entry,omitempty"`
	Receipt      *continuo.Receipt   `json:"receipt,omitempty"`
	Turn         *TurnRecord         `json:"turn,omitempty"`
	Prefix       *continuo.Prefix    `json:"prefix,omitempty"`
	// Damaged says that an entry's stored form does not match its checksum. PutRecords keeps the mark, so that a copy
	// does not make a damaged entry look valid.
	Damaged bool `json:"damaged,omitempty"`
}

// ConversationRecord is a conversation in its stored form.
type ConversationRecord struct {
	continuo.Conversation // its JSON includes the Lineage; without the Revision, which is the store's own
	// Deleted says that a person deleted the conversation, and that forks still inherit its entries up to LastSeq.
	Deleted bool
}

type conversationRecordJSON struct {
	continuo.Conversation
	Lineage []continuo.Segment `json:"lineage,omitempty"`
	Deleted bool               `json:"deleted,omitempty"`
}

// MarshalJSON writes the conversation's fields, its lineage, and whether it is deleted.
func (r ConversationRecord) MarshalJSON() ([]byte, error) {
	return rawjson.Marshal(conversationRecordJSON{r.Conversation, r.Lineage, r.Deleted})
}

// UnmarshalJSON reads the form that MarshalJSON writes.
func (r *ConversationRecord) UnmarshalJSON(data []byte) error {
	var wire conversationRecordJSON
	if err := json.Unmarshal(data, &wire); err != nil {
		return fmt.Errorf("conversation record: %w", err)
	}
	*r = ConversationRecord{Conversation: wire.Conversation, Deleted: wire.Deleted}
	r.Lineage = wire.Lineage
	return nil
}

// TurnRecord is a turn, void or not, with its signals and events.
type TurnRecord struct {
	continuo.Turn
	Signals []continuo.TurnSignal `json:"signals,omitempty"`
	Events  []continuo.TurnEvent  `json:"events,omitempty"`
}

// RecordPosition is the position of a record: the conversation first, then entries by seq, receipts by key, turns by
// id, and prefixes by seq and hash. The zero value precedes all.
type RecordPosition struct {
	Kind RecordKind
	Seq  int64  // of an entry; of a prefix
	Key  string // of a receipt; the id of a turn; the hash of a prefix
}

// Compare orders positions as [RecordStore.Records] does.
func (p RecordPosition) Compare(other RecordPosition) int {
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
	RecordPrefix
)

// Position returns the position of a record.
func (r *Record) Position() RecordPosition {
	switch {
	case r.Entry != nil:
		return RecordPosition{Kind: RecordEntry, Seq: r.Entry.Seq}
	case r.Receipt != nil:
		return RecordPosition{Kind: RecordReceipt, Key: r.Receipt.Key}
	case r.Turn != nil:
		return RecordPosition{Kind: RecordTurn, Key: r.Turn.ID}
	case r.Prefix != nil:
		return RecordPosition{Kind: RecordPrefix, Seq: r.Prefix.Seq, Key: r.Prefix.Hash.String()}
	}
	return RecordPosition{Kind: RecordConversation}
}
