package postgres

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/jackc/pgx/v5"
)

const (
	selectReceipt = `SELECT key, fingerprint, first_seq, last_seq FROM continuo.receipts WHERE conversation_id = $1 AND key = $2`

	// The lock prevents deletion and archiving of the conversation, and allows appends.
	keepHead = selectHead + ` FOR KEY SHARE`

	advanceReceipt = `
INSERT INTO continuo.receipts AS kept (conversation_id, key, fingerprint, first_seq, last_seq) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (conversation_id, key) DO UPDATE SET first_seq = excluded.first_seq, last_seq = excluded.last_seq
WHERE kept.fingerprint = excluded.fingerprint AND (excluded.last_seq, excluded.first_seq) > (kept.last_seq, kept.first_seq)`
)

// AdvanceReceipt is part of continuo.EntryStore.
func (s *Store) AdvanceReceipt(ctx context.Context, conversationID string, r continuo.Receipt) (kept continuo.Receipt, err error) {
	err = s.transact(ctx, "advance a receipt of conversation "+conversationID, func(ctx context.Context, tx pgx.Tx) error {
		var last int64
		var archived bool
		if err := tx.QueryRow(ctx, keepHead, conversationID).Scan(&last, &archived); err != nil {
			return orNotFound(err)
		}
		if archived {
			return fmt.Errorf("conversation %s: %w", conversationID, continuo.ErrArchived)
		}
		if _, err := tx.Exec(ctx, advanceReceipt, conversationID, r.Key, r.Fingerprint, r.First, r.Last); err != nil {
			return err
		}
		return tx.QueryRow(ctx, selectReceipt, conversationID, r.Key).Scan(&kept.Key, &kept.Fingerprint, &kept.First, &kept.Last)
	}, nil)
	return kept, err
}

// Receipt is part of continuo.EntryStore.
func (s *Store) Receipt(ctx context.Context, conversationID, key string) (found continuo.Receipt, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		return orNotFound(q.QueryRow(ctx, selectReceipt, conversationID, key).Scan(&found.Key, &found.Fingerprint, &found.First, &found.Last))
	})
	return found, err
}

func receiptColumns(receipts []continuo.Receipt) []any {
	var keys, fingerprints []string
	var first, last []int64
	for _, r := range receipts {
		keys, fingerprints = append(keys, r.Key), append(fingerprints, r.Fingerprint)
		first, last = append(first, r.First), append(last, r.Last)
	}
	return []any{keys, fingerprints, first, last}
}
