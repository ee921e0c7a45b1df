package sqlite

import (
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

const (
	archiveConversation = `UPDATE conversations SET archived_at = ?, updated_at = ` + newestTime + `, last_seq = ` + newestSeq + ` WHERE id = ?`

	restoreConversation = `UPDATE conversations SET archived_at = NULL WHERE id = ?`

	countOwnEntries = `SELECT count(*) FROM entries NOT INDEXED WHERE place BETWEEN ` + placeOf + `?1) | ?2 AND ` + placeOf + `?1) | ?3`
)

// Archive is part of maintenance.RecordStore.
func (s *Store) Archive(ctx context.Context, seen continuo.Conversation, at time.Time) error {
	return s.write(ctx, func(conn *connection) error {
		if err := mayArchive(conn, seen, s.now()); err != nil {
			return err
		}
		if _, err := conn.exec(archiveConversation, stamp(at), seen.ID); err != nil {
			return err
		}
		if err := removeBeside(conn, seen.ID, deleteArchivedReceipts); err != nil {
			return err
		}
		return release(conn, seen.ID)
	})
}

func mayArchive(conn *connection, seen continuo.Conversation, now time.Time) error {
	conversation, err := readConversation(conn, conversationByID, seen.ID)
	switch {
	case err != nil:
		return err
	case !conversation.ArchivedAt.IsZero():
		return fmt.Errorf("archive %s: %w", seen.ID, continuo.ErrArchived)
	case conversation.LastSeq != seen.LastSeq || !conversation.UpdatedAt.Equal(seen.UpdatedAt):
		return &continuo.ConflictError{Want: seen.LastSeq + 1, Have: conversation.LastSeq + 1}
	}
	running, err := readTurns(conn, now, runningTurn, seen.ID)
	if err == nil && len(running) > 0 {
		return &continuo.BusyError{Turn: running[0]}
	}
	return err
}

// Restore is part of maintenance.RecordStore.
func (s *Store) Restore(ctx context.Context, conversationID string) error {
	return s.write(ctx, func(conn *connection) error {
		c, err := readConversation(conn, conversationByID, conversationID)
		if err != nil || c.ArchivedAt.IsZero() {
			return err
		}
		var have int64
		if err := conn.row(countOwnEntries, []any{conversationID, c.ForkSeq + 1, c.LastSeq}, &have); err != nil {
			return err
		}
		if want := c.LastSeq - c.ForkSeq; have != want {
			return fmt.Errorf("restore conversation %s: %w: %d of its %d entries are there", conversationID, continuo.ErrInvalid, have, want)
		}
		if _, err = conn.exec(restoreConversation, conversationID); err != nil {
			return err
		}
		if err = remakeRuns(conn, conversationID); err != nil {
			return err
		}
		_, err = conn.exec(insertDiscard, continuo.ObjectName(conversationID, maintenance.ArchiveObject(c.ArchivedAt)))
		return err
	})
}
