package postgres

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/jackc/pgx/v5"
)

// The only statements that remove conversations and entries, except those of archiving and redaction.
const (
	// The lock waits for forks that are being created, and makes later ones wait.
	lockLiving = selectConversation + `WHERE id = $1 AND NOT deleted FOR UPDATE`

	// The rest of a conversation while forks need its entries: no text that a person wrote.
	buryConversation = `
UPDATE continuo.conversations SET deleted = true, key = NULL, title = '', user_id = '', metadata = NULL, labels = NULL, lineage = NULL, archived_at = NULL
WHERE id = $1 AND NOT deleted`

	deleteConversationKey = `DELETE FROM continuo.conversation_keys WHERE project_id = $1 AND key = $2`

	deleteReceipts       = `DELETE FROM continuo.receipts WHERE conversation_id = $1`
	deleteAllTurnEvents  = `DELETE FROM continuo.turn_events WHERE conversation_id = $1`
	deleteAllTurnSignals = `DELETE FROM continuo.turn_signals WHERE conversation_id = $1`
	deleteAllTurns       = `DELETE FROM continuo.turns WHERE conversation_id = $1`

	deleteLineage = `DELETE FROM continuo.lineage WHERE ancestor_id = $1 AND conversation_id = $2`

	lockAny = `SELECT deleted, archived_at IS NOT NULL FROM continuo.conversations WHERE id = $1 FOR UPDATE`

	countForks = `SELECT count(*), coalesce(max(through), 0) FROM continuo.lineage WHERE ancestor_id = $1`

	deleteEntries = `DELETE FROM continuo.entries WHERE conversation_id = $1 AND seq > $2`

	deleteEntryObjects = `DELETE FROM continuo.entry_objects WHERE conversation_id = $1 AND seq > $2`

	// The objects that are needed only by entries above a seq.
	discardObjectsAbove = `
INSERT INTO continuo.discards (name)
SELECT DISTINCT o.conversation_id || '/' || o.object_id FROM continuo.entry_objects AS o
WHERE o.conversation_id = $1 AND o.seq > $2 AND NOT EXISTS (
  SELECT 1 FROM continuo.entry_objects AS needed
  WHERE needed.conversation_id = $1 AND needed.seq <= $2 AND needed.object_id = o.object_id)
ON CONFLICT DO NOTHING`

	discardName = `INSERT INTO continuo.discards (name) VALUES ($1) ON CONFLICT DO NOTHING`

	// For a conversation that forks keep. Otherwise all of its objects are discarded.
	discardArchive = `
INSERT INTO continuo.discards (name) SELECT $2::text FROM continuo.conversations WHERE id = $1 ON CONFLICT DO NOTHING`

	shortenDeleted = `UPDATE continuo.conversations SET last_seq = $2 WHERE id = $1 AND deleted`

	deleteConversation = `DELETE FROM continuo.conversations WHERE id = $1 AND deleted`

	isGone = `SELECT NOT EXISTS (SELECT 1 FROM continuo.conversations WHERE id = $1 AND NOT deleted)`
)

// Delete is part of continuo.ConversationStore. Entries that no fork begins with are removed at once, the
// others with the last fork that does.
func (s *Store) Delete(ctx context.Context, id string) error {
	err := s.transact(ctx, "delete conversation "+id, func(ctx context.Context, tx pgx.Tx) error {
		conversation, err := readConversation(ctx, tx, lockLiving, id)
		if err != nil {
			return err
		}
		if err := deleteOwnRows(ctx, tx, conversation); err != nil {
			return err
		}
		for _, segment := range conversation.Lineage {
			if err := release(ctx, tx, segment.ConversationID, id); err != nil {
				return err
			}
		}
		if err := release(ctx, tx, id, ""); err != nil || conversation.ArchivedAt.IsZero() {
			return err
		}
		_, err = tx.Exec(ctx, discardArchive, id, continuo.ObjectName(id, maintenance.ArchiveObject(conversation.ArchivedAt)))
		return err
	}, func(ctx context.Context, q querier) (committed bool, err error) {
		err = q.QueryRow(ctx, isGone, id).Scan(&committed)
		return committed, err
	})
	if err == nil {
		s.changed(id)
	}
	return err
}

// deleteOwnRows removes everything except the entries and the conversation's row.
func deleteOwnRows(ctx context.Context, tx pgx.Tx, c continuo.Conversation) error {
	batch := &pgx.Batch{}
	for _, statement := range []string{buryConversation, deleteReceipts, deletePrefixes, deleteUsage, deleteAllRuns, deleteAllTurnEvents, deleteAllTurnSignals, deleteAllTurns, deleteAllDocuments, deleteAllVectors, deleteEmbedded} {
		batch.Queue(statement, c.ID)
	}
	if c.Key != "" {
		batch.Queue(deleteConversationKey, c.ProjectID, c.Key)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// release removes what a deleted or archived conversation keeps for forks that no longer exist, after one
// more fork was removed ("" for none). It always takes the lock, because another transaction may be deleting
// the conversation.
func release(ctx context.Context, tx pgx.Tx, id, fork string) error {
	var deleted, archived bool
	if err := tx.QueryRow(ctx, lockAny, id).Scan(&deleted, &archived); err != nil {
		return orNotFound(err)
	}
	if _, err := tx.Exec(ctx, deleteLineage, id, fork); err != nil || !deleted && !archived {
		return err
	}
	var forks, needed int64
	if err := tx.QueryRow(ctx, countForks, id).Scan(&forks, &needed); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(deleteEntries, id, needed)
	if deleted { // the objects of an archived conversation stay
		queueRelease(batch, id, forks, needed)
	}
	return tx.SendBatch(ctx, batch).Close()
}

func queueRelease(batch *pgx.Batch, id string, forks, needed int64) {
	if forks == 0 {
		batch.Queue(discardName, continuo.ObjectName(id, ""))
		batch.Queue(deleteConversation, id)
	} else {
		batch.Queue(discardObjectsAbove, id, needed)
		batch.Queue(shortenDeleted, id, needed)
	}
	batch.Queue(deleteEntryObjects, id, needed)
}
