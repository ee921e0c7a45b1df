package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

const (
	insertDiscard = `INSERT INTO discards (name) VALUES (?) ON CONFLICT DO NOTHING`

	// For a conversation that forks keep. Otherwise all of its objects are discarded.
	discardArchive = `INSERT INTO discards (name) SELECT ? FROM conversations WHERE id = ? ON CONFLICT DO NOTHING`

	selectDiscards = `SELECT name FROM discards ORDER BY number LIMIT +?`

	deleteDiscard = `DELETE FROM discards WHERE name = ?`

	// The objects that are needed only by entries above a seq.
	objectsAbove = `
SELECT DISTINCT object_id FROM entry_objects AS gone
WHERE conversation_id = ?1 AND seq > ?2 AND NOT EXISTS (
  SELECT 1 FROM entry_objects AS kept WHERE kept.conversation_id = ?1 AND kept.object_id = gone.object_id AND kept.seq <= ?2)`

	deleteObjectsAbove = `DELETE FROM entry_objects WHERE conversation_id = ? AND seq > ?`

	objectsOf = `SELECT object_id FROM entry_objects WHERE conversation_id = ? AND seq = ?`

	deleteObjectsOf = `DELETE FROM entry_objects WHERE conversation_id = ? AND seq = ?`

	countNeeds = `SELECT count(*) FROM entry_objects WHERE conversation_id = ? AND object_id = ?`
)

// Discards is part of continuo.DiscardStore.
func (s *Store) Discards(ctx context.Context, limit int) (names []string, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("list discards: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	err = s.read(ctx, func(conn *connection) error {
		names, err = readTexts(conn, selectDiscards, limit)
		return err
	})
	return names, err
}

// Discarded is part of continuo.DiscardStore.
func (s *Store) Discarded(ctx context.Context, names []string) error {
	return s.write(ctx, func(conn *connection) error {
		for _, name := range names {
			if _, err := conn.exec(deleteDiscard, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// discardAbove discards the objects that only entries above a seq need.
func discardAbove(conn *connection, conversationID string, seq int64) error {
	ids, err := readTexts(conn, objectsAbove, conversationID, seq)
	if err != nil {
		return err
	}
	if _, err := conn.exec(deleteObjectsAbove, conversationID, seq); err != nil {
		return err
	}
	return discard(conn, conversationID, ids)
}

// discardOf replaces an entry's object needs by those of its replacement, and discards the rest.
func discardOf(conn *connection, entry *continuo.Entry) error {
	ids, err := readTexts(conn, objectsOf, entry.ConversationID, entry.Seq)
	if err != nil {
		return err
	}
	if _, err := conn.exec(deleteObjectsOf, entry.ConversationID, entry.Seq); err != nil {
		return err
	}
	if err := insertObjects(conn, entry); err != nil {
		return err
	}
	for _, id := range ids {
		var needs int
		if err := conn.row(countNeeds, []any{entry.ConversationID, id}, &needs); err != nil {
			return err
		}
		if needs > 0 {
			continue
		}
		if err := discard(conn, entry.ConversationID, []string{id}); err != nil {
			return err
		}
	}
	return nil
}

func discard(conn *connection, conversationID string, ids []string) error {
	for _, id := range ids {
		if _, err := conn.exec(insertDiscard, continuo.ObjectName(conversationID, id)); err != nil {
			return err
		}
	}
	return nil
}

// readTexts reads the one column of a query.
func readTexts(conn *connection, query string, args ...any) (texts []string, err error) {
	err = conn.query(query, args, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		texts = append(texts, text)
		return err
	})
	return texts, err
}
