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

	advanceReceipt = `
INSERT INTO receipts (conversation_id, key, fingerprint, first_seq, last_seq) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (conversation_id, key) DO UPDATE SET first_seq = excluded.first_seq, last_seq = excluded.last_seq
WHERE receipts.fingerprint = excluded.fingerprint AND (excluded.last_seq, excluded.first_seq) > (receipts.last_seq, receipts.first_seq)`

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

// AdvanceReceipt is part of continuo.EntryStore.
func (s *Store) AdvanceReceipt(ctx context.Context, conversationID string, r continuo.Receipt) (kept continuo.Receipt, err error) {
	if err := checkReceipts([]continuo.Receipt{r}); err != nil {
		return kept, err
	}
	err = s.write(ctx, func(conn *connection) error {
		if err := canAdd(conn, conversationID); err != nil {
			return err
		}
		if _, err := conn.exec(advanceReceipt, conversationID, r.Key, r.Fingerprint, r.First, r.Last); err != nil {
			return err
		}
		return conn.row(selectReceipt, []any{conversationID, r.Key}, &kept.Key, &kept.Fingerprint, &kept.First, &kept.Last)
	})
	return kept, err
}

// canAdd fails when nothing can be added to a conversation: it does not exist or is archived.
func canAdd(conn *connection, conversationID string) error {
	_, err := readHead(conn, conversationID)
	return err
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

// orNotFound returns ErrNotFound when no row was found.
func orNotFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return continuo.ErrNotFound
	}
	return err
}
