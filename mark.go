package continuo

import (
	"context"
	"fmt"
	"strings"
)

// Mark is the read position of a named reader of a conversation, such as a front end that shows its entries elsewhere.
// It only moves forward: of two readers with one name, the one that is behind changes nothing.
//
// A mark is stored beside the conversation's entries and not in its metadata, which clients replace. It is deleted,
// archived and copied with the conversation; a fork begins without it.
type Mark struct {
	// Seq is the seq of the newest entry that the reader has finished.
	Seq int64
	// Part counts how much of the entry after Seq the reader has finished.
	Part int64
}

// markKey is the key of a mark's receipt. The space distinguishes it from clients' idempotency keys, which are visible
// ASCII.
func markKey(name string) string { return "mark " + name }

// markFingerprint distinguishes the receipts of marks from those of appends.
const markFingerprint = "mark"

// IsMark reports whether a receipt is a mark: its numbers are a position, and need not name entries.
func (r Receipt) IsMark() bool {
	return (r.Fingerprint == markFingerprint || strings.HasPrefix(r.Fingerprint, markFingerprint+" ")) && strings.HasPrefix(r.Key, markKey(""))
}

// Mark returns the mark of a reader; ErrNotFound where it has none.
func (l *Log) Mark(ctx context.Context, conversationID, name string) (Mark, error) {
	receipt, err := l.store.Receipt(ctx, conversationID, markKey(name))
	return Mark{Seq: receipt.Last, Part: receipt.First}, err
}

// AdvanceMark stores the mark of a reader unless a newer one is stored, and returns the one that is stored then.
func (l *Log) AdvanceMark(ctx context.Context, conversationID, name string, mark Mark) (Mark, error) {
	if name == "" || mark.Seq < 0 || mark.Part < 0 {
		return Mark{}, fmt.Errorf("mark %q at %d.%d: %w: it needs a name, and numbers from 0", name, mark.Seq, mark.Part, ErrInvalid)
	}
	kept, err := l.store.AdvanceReceipt(ctx, conversationID, Receipt{Key: markKey(name), Fingerprint: markFingerprint, First: mark.Part, Last: mark.Seq})
	return Mark{Seq: kept.Last, Part: kept.First}, err
}
