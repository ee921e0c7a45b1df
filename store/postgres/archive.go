package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/jackc/pgx/v5"
)

const (
	// The locked row stays unchanged until the transaction ends: appends, turns and forks wait for it.
	lockConversation = `SELECT last_seq, updated_at, archived_at, deleted FROM continuo.conversations WHERE id = $1 FOR UPDATE`

	// The rows of entry_objects that belong to the entries stay: the archive needs the objects.
	deleteArchivedEntries = `
DELETE FROM continuo.entries WHERE conversation_id = $1
AND seq > (SELECT coalesce(max(through), 0) FROM continuo.lineage WHERE ancestor_id = $1)`

	// Marks stay: they list the conversations that quote it.
	deleteArchivedReceipts = deleteReceipts + ` AND key NOT LIKE 'mark %'`

	markArchived = `UPDATE continuo.conversations SET archived_at = $2, indexed_seq = fork_seq, indexed_title = NULL WHERE id = $1`

	isArchivedAt = `SELECT EXISTS (SELECT 1 FROM continuo.conversations WHERE id = $1 AND archived_at = $2)`

	// The conversation's own entries are those from fork_seq + 1 to last_seq.
	countMissing = `
SELECT last_seq - fork_seq - (SELECT count(*) FROM continuo.entries WHERE conversation_id = $1 AND seq > fork_seq AND seq <= last_seq)
FROM continuo.conversations WHERE id = $1`

	unmarkArchived = `UPDATE continuo.conversations SET archived_at = NULL, indexed_seq = fork_seq, indexed_title = NULL WHERE id = $1`
)

// lockedConversation holds what an operation reads of a conversation that it has locked.
type lockedConversation struct {
	lastSeq    int64
	updatedAt  string
	archivedAt *string
	deleted    bool
}

func lock(ctx context.Context, tx pgx.Tx, id string) (c lockedConversation, err error) {
	err = tx.QueryRow(ctx, lockConversation, id).Scan(&c.lastSeq, &c.updatedAt, &c.archivedAt, &c.deleted)
	return c, orNotFound(err)
}

// Archive is part of maintenance.RecordStore.
func (s *Store) Archive(ctx context.Context, seen continuo.Conversation, at time.Time) error {
	conversationID := seen.ID
	err := s.transact(ctx, "archive conversation "+conversationID, func(ctx context.Context, tx pgx.Tx) error {
		if err := checkArchivable(ctx, tx, seen); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for _, statement := range []string{deleteArchivedEntries, deleteArchivedReceipts, deletePrefixes, deleteUsage, deleteAllRuns, deleteAllTurnEvents, deleteAllTurnSignals, deleteAllTurns, deleteAllDocuments, deleteAllVectors, deleteEmbedded} {
			batch.Queue(statement, conversationID)
		}
		batch.Queue(markArchived, conversationID, stamp(at))
		return tx.SendBatch(ctx, batch).Close()
	}, func(ctx context.Context, q querier) (committed bool, err error) {
		err = q.QueryRow(ctx, isArchivedAt, conversationID, stamp(at)).Scan(&committed)
		return committed, err
	})
	if err == nil {
		s.changed(conversationID)
	}
	return err
}

func checkArchivable(ctx context.Context, tx pgx.Tx, seen continuo.Conversation) error {
	have, err := lock(ctx, tx, seen.ID)
	switch {
	case err != nil:
		return err
	case have.deleted:
		return continuo.ErrNotFound
	case have.archivedAt != nil:
		return continuo.ErrArchived
	case have.lastSeq != seen.LastSeq || have.updatedAt != stamp(seen.UpdatedAt):
		return &continuo.ConflictError{Want: seen.LastSeq + 1, Have: have.lastSeq + 1}
	}
	running, err := readTurn(ctx, tx, runningTurn, seen.ID)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = &continuo.BusyError{Turn: running}
	}
	return err
}

// Restore is part of maintenance.RecordStore. The index is built again.
func (s *Store) Restore(ctx context.Context, conversationID string) error {
	err := s.transact(ctx, "restore conversation "+conversationID, func(ctx context.Context, tx pgx.Tx) error {
		have, err := lock(ctx, tx, conversationID)
		if err != nil {
			return err
		}
		if have.deleted {
			return continuo.ErrNotFound
		}
		if have.archivedAt == nil {
			return nil
		}
		var missing int64
		if err := tx.QueryRow(ctx, countMissing, conversationID).Scan(&missing); err != nil {
			return err
		}
		if missing != 0 {
			return fmt.Errorf("restore conversation %s: %w: %d of its entries are missing; put all of its records first", conversationID, continuo.ErrInvalid, missing)
		}
		archivedAt, err := unstamp(*have.archivedAt, nil)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, unmarkArchived, conversationID); err != nil {
			return err
		}
		if err := remakeRuns(ctx, tx, conversationID); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, discardName, continuo.ObjectName(conversationID, maintenance.ArchiveObject(archivedAt)))
		return err
	}, nil)
	if err == nil {
		s.changed(conversationID)
	}
	return err
}
