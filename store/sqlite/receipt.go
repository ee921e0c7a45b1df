package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

const (
	insertReceipt = `INSERT INTO receipts (conversation_id, key, fingerprint, first_seq, last_seq) VALUES (?, ?, ?, ?, ?)`

	selectReceipt = `SELECT key, fingerprint, first_seq, last_seq FROM receipts WHERE conversation_id = ? AND key = ?`
)

func checkReceipts(receipts []continuo.Receipt) error {
	for _, r := range receipts {
		if err := checkText(r.Key, r.Fingerprint); err != nil {
			return fmt.Errorf("receipt: %w", err)
		}
	}
	return nil
}

func insertReceipts(conn *connection, conversationID string, receipts []continuo.Receipt) error {
	for _, r := range receipts {
		if _, err := conn.exec(insertReceipt, conversationID, r.Key, r.Fingerprint, r.First, r.Last); err != nil {
			return err
		}
	}
	return nil
}

// Receipt is part of continuo.EntryStore.
func (s *Store) Receipt(ctx context.Context, conversationID, key string) (continuo.Receipt, error) {
	var found continuo.Receipt
	err := s.read(ctx, func(conn *connection) error {
		err := conn.row(selectReceipt, []any{conversationID, key}, &found.Key, &found.Fingerprint, &found.First, &found.Last)
		return orNotFound(err)
	})
	return found, err
}

// orNotFound says ErrNotFound for a row that there is not.
func orNotFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return continuo.ErrNotFound
	}
	return err
}
