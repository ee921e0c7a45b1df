package sqlite

import "context"

// The only statements that remove anything from the log.
const (
	// What is left of a conversation while forks need its entries: nothing that a person wrote.
	buryConversation = `
UPDATE conversations SET deleted = 1, key = NULL, title = '', metadata = NULL, lineage = NULL
WHERE id = ? AND deleted = 0`

	deleteReceipts = `DELETE FROM receipts WHERE conversation_id = ?`

	deleteAllTurnEvents  = `DELETE FROM turn_events WHERE conversation_id = ?`
	deleteAllTurnSignals = `DELETE FROM turn_signals WHERE conversation_id = ?`
	deleteAllTurns       = `DELETE FROM turns WHERE conversation_id = ?`

	deleteTurnEvents  = `DELETE FROM turn_events WHERE conversation_id = ? AND turn_id = ?`
	deleteTurnSignals = `DELETE FROM turn_signals WHERE conversation_id = ? AND turn_id = ?`
	deleteTurn        = `DELETE FROM turns WHERE conversation_id = ? AND id = ?`

	// The outputs that no entry names any more, or has ever named.
	deleteLooseOutputs = `
DELETE FROM outputs WHERE conversation_id = ? AND NOT EXISTS (
  SELECT 1 FROM entries INDEXED BY entries_by_output_id
  WHERE entries.conversation_id = outputs.conversation_id AND entries.output_id = outputs.id)`

	deleteOutput = `
DELETE FROM outputs WHERE conversation_id = ?1 AND id = ?2 AND NOT EXISTS (
  SELECT 1 FROM entries INDEXED BY entries_by_output_id WHERE conversation_id = ?1 AND output_id = ?2)`

	deleteLineage = `DELETE FROM lineage WHERE ancestor_id = ? AND conversation_id = ?`

	countForks = `SELECT count(*), coalesce(max(through), 0) FROM lineage WHERE ancestor_id = ?`

	countDeleted = `SELECT count(*) FROM conversations WHERE id = ? AND deleted = 1`

	deleteEntries = `DELETE FROM entries WHERE conversation_id = ? AND seq > ?`

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
		for _, statement := range []string{buryConversation, deleteReceipts, deleteAllTurnEvents, deleteAllTurnSignals, deleteAllTurns} {
			if _, err := conn.exec(statement, id); err != nil {
				return err
			}
		}
		for _, segment := range conversation.Lineage {
			if _, err := conn.exec(deleteLineage, segment.ConversationID, id); err != nil {
				return err
			}
			if err := release(conn, segment.ConversationID); err != nil {
				return err
			}
		}
		return release(conn, id)
	})
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

// DeleteOutput is part of continuo.OutputStore.
func (s *Store) DeleteOutput(ctx context.Context, conversationID, id string) error {
	return s.write(ctx, func(conn *connection) error {
		_, err := conn.exec(deleteOutput, conversationID, id)
		return err
	})
}

// release removes what a deleted conversation keeps for forks that are gone.
func release(conn *connection, id string) error {
	var deleted int
	if err := conn.row(countDeleted, []any{id}, &deleted); err != nil || deleted == 0 {
		return err
	}
	var forks, needed int64
	if err := conn.row(countForks, []any{id}, &forks, &needed); err != nil {
		return err
	}
	if _, err := conn.exec(deleteEntries, id, needed); err != nil {
		return err
	}
	_, err := conn.exec(deleteLooseOutputs, id)
	if err != nil {
		return err
	}
	if forks == 0 {
		_, err = conn.exec(deleteConversation, id)
	} else {
		_, err = conn.exec(shortenDeleted, needed, id)
	}
	return err
}
