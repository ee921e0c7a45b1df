package postgres

import (
	"context"

	continuo "github.com/continuo-log/continuo"
)

const selectReceipt = `SELECT key, fingerprint, first_seq, last_seq FROM continuo.receipts WHERE conversation_id = $1 AND key = $2`

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
