package sqlite

import (
	"context"
	"database/sql"
	"errors"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

// The only statements that remove anything from the log.
const (
	// The rest of a conversation while forks need its entries: no text that a person wrote.
	buryConversation = `
UPDATE conversations SET deleted = 1, key = NULL, title = '', user_id = '', metadata = NULL, labels = NULL, lineage = NULL, archived_at = NULL,
  updated_at = ` + newestTime + `, last_seq = ` + newestSeq + `
WHERE id = ? AND deleted = 0`

	deleteReceipts = `DELETE FROM receipts WHERE conversation_id = ?`

	// Marks stay with an archived conversation: they list the conversations that quote it.
	deleteArchivedReceipts = deleteReceipts + ` AND NOT (key >= 'mark ' AND key < 'mark!')`
	deleteRuns             = `DELETE FROM runs WHERE conversation_id = ?`

	deleteAllTurnEvents  = `DELETE FROM turn_events WHERE conversation_id = ?`
	deleteAllTurnSignals = `DELETE FROM turn_signals WHERE conversation_id = ?`
	deleteAllTurns       = `DELETE FROM turns WHERE conversation_id = ?`

	deleteTurnEvents  = `DELETE FROM turn_events WHERE conversation_id = ? AND turn_id = ?`
	deleteTurnSignals = `DELETE FROM turn_signals WHERE conversation_id = ? AND turn_id = ?`
	deleteTurn        = `DELETE FROM turns WHERE conversation_id = ? AND id = ?`

	deleteLineage = `DELETE FROM lineage WHERE ancestor_id = ? AND conversation_id = ?`

	countForks = `SELECT count(*), coalesce(max(through), 0) FROM lineage WHERE ancestor_id = ?`

	selectReleased = `SELECT deleted FROM conversations WHERE id = ? AND (deleted = 1 OR archived_at IS NOT NULL)`

	deleteEntries = `
DELETE FROM entries NOT INDEXED
WHERE place > ` + placeOf + `?1) | ?2 AND place <= ` + placeOf + `?1) | 4294967295`

	shortenDeleted = `UPDATE conversations SET last_seq = ? WHERE id = ? AND deleted = 1`

	deleteConversation = `DELETE FROM conversations WHERE id = ? AND deleted = 1`
)

// Delete is part of continuo.ConversationStore. Entries that no fork begins with are removed at once, the
// others with the last fork that does.
func (s *Store) Delete(ctx context.Context, id string) error {
	return s.write(ctx, func(conn *connection) error {
		conversation, err := readConversation(conn, conversationByID, id)
		if err != nil {
			return err
		}
		conn.residue, conn.removed = true, true
		if _, err := conn.exec(buryConversation, id); err != nil {
			return err
		}
		if err := removeBeside(conn, id, deleteReceipts); err != nil {
			return err
		}
		for _, segment := range conversation.Lineage {
			if _, err := conn.exec(deleteLineage, segment.ConversationID, id); err != nil {
				return err
			}
			if err := release(conn, segment.ConversationID); err != nil {
				return err
			}
		}
		if err := release(conn, id); err != nil || conversation.ArchivedAt.IsZero() {
			return err
		}
		_, err = conn.exec(discardArchive, continuo.ObjectName(id, maintenance.ArchiveObject(conversation.ArchivedAt)), id)
		return err
	})
}

// removeBeside removes what a conversation has besides its entries: receipts, turns, and the indexes of
// prefixes, of runs and of terms.
func removeBeside(conn *connection, id, receipts string) error {
	for _, statement := range []string{receipts, deletePrefixes, deleteUsage, deleteRuns, deleteAllTurnEvents, deleteAllTurnSignals, deleteAllTurns} {
		if _, err := conn.exec(statement, id); err != nil {
			return err
		}
	}
	return forgetIndex(conn, id)
}

// removeTurn removes a turn with its events and signals.
func removeTurn(conn *connection, conversationID, turnID string) error {
	for _, statement := range []string{deleteTurnEvents, deleteTurnSignals, deleteTurn} {
		if _, err := conn.exec(statement, conversationID, turnID); err != nil {
			return err
		}
	}
	return nil
}

// release removes the entries that a deleted or an archived conversation keeps for forks that no longer
// exist.
func release(conn *connection, id string) error {
	var deleted bool
	err := conn.row(selectReleased, []any{id}, &deleted)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	var forks, needed int64
	if err == nil {
		err = conn.row(countForks, []any{id}, &forks, &needed)
	}
	if err == nil {
		_, err = conn.exec(deleteEntries, id, needed)
	}
	if err != nil || !deleted {
		return err
	}
	if forks == 0 {
		return removeWhole(conn, id)
	}
	if err := discardAbove(conn, id, needed); err != nil {
		return err
	}
	_, err = conn.exec(shortenDeleted, needed, id)
	return err
}

// removeWhole removes the last rows of a conversation.
func removeWhole(conn *connection, id string) error {
	if _, err := conn.exec(deleteObjectsAbove, id, 0); err != nil {
		return err
	}
	if _, err := conn.exec(deleteConversation, id); err != nil {
		return err
	}
	_, err := conn.exec(insertDiscard, continuo.ObjectName(id, ""))
	return err
}
