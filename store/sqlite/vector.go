package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

const (
	embeddedSeq = `coalesce((SELECT seq FROM embedded WHERE conversation_id = conversations.id AND model = ?1), fork_seq)`

	selectUnembedded = conversationColumns + `, ` + embeddedSeq + `, indexed_seq
FROM conversations WHERE id > ?2 AND deleted = 0 AND archived_at IS NULL AND indexed_seq > ` + embeddedSeq + ` ORDER BY id LIMIT +?3`

	selectEmbedded = `SELECT ` + embeddedSeq + `, indexed_seq FROM conversations WHERE id = ?2 AND deleted = 0 AND archived_at IS NULL`

	isEmbedded = `SELECT EXISTS (SELECT 1 FROM embedded WHERE conversation_id = ? AND model = ?)`

	putEmbedded = `INSERT INTO embedded (conversation_id, model, seq) VALUES (?1, ?2, ?3) ON CONFLICT (conversation_id) DO UPDATE SET model = ?2, seq = ?3`

	insertVector = `INSERT INTO vectors (conversation_id, seq, vector) VALUES (?, ?, ?)`

	selectVectors = `
SELECT seq, vector FROM vectors WHERE conversation_id = ?1 AND seq BETWEEN ?2 AND ?3
AND EXISTS (SELECT 1 FROM embedded WHERE conversation_id = ?1 AND model = ?4) ORDER BY seq DESC LIMIT +?5`

	deleteVector = `DELETE FROM vectors WHERE conversation_id = ? AND seq = ?`

	deleteVectors = `DELETE FROM vectors WHERE conversation_id = ?`

	deleteEmbedded = `DELETE FROM embedded WHERE conversation_id = ?`
)

// Unembedded is part of index.Store.
func (s *Store) Unembedded(ctx context.Context, query index.UnembeddedQuery) (found []index.Unembedded, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list what has no vectors: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	err = s.read(ctx, func(conn *connection) error {
		return conn.query(selectUnembedded, []any{query.Model, query.After, query.Limit}, func(rows *sql.Rows) (err error) {
			var u index.Unembedded
			if u.Conversation, err = scanConversation(rows, &u.Embedded, &u.Indexed); err != nil {
				return err
			}
			found = append(found, u)
			return nil
		})
	})
	return found, err
}

// Embed is part of index.Store.
func (s *Store) Embed(ctx context.Context, batch index.VectorBatch) error {
	if err := batch.Check(); err != nil {
		return err
	}
	return s.write(ctx, func(conn *connection) error {
		var at, indexed int64
		var known bool
		if err := conn.row(selectEmbedded, []any{batch.Model, batch.ConversationID}, &at, &indexed); err != nil {
			return orNotFound(err)
		}
		if at != batch.After || batch.Through > indexed {
			return &continuo.ConflictError{Want: batch.After + 1, Have: at + 1}
		}
		if err := conn.row(isEmbedded, []any{batch.ConversationID, batch.Model}, &known); err != nil {
			return err
		}
		if !known { // by another model
			if _, err := conn.exec(deleteVectors, batch.ConversationID); err != nil {
				return err
			}
		}
		if _, err := conn.exec(putEmbedded, batch.ConversationID, batch.Model, batch.Through); err != nil {
			return err
		}
		redacted, err := readRedacted(conn, batch.ConversationID, batch.After+1, batch.Through)
		if err != nil {
			return err
		}
		for _, vector := range batch.Vectors {
			if redacted[vector.Seq] {
				continue
			}
			if _, err := conn.exec(insertVector, batch.ConversationID, vector.Seq, vector.Values); err != nil {
				return err
			}
		}
		return nil
	})
}

// Vectors is part of index.Store.
func (s *Store) Vectors(ctx context.Context, query index.VectorQuery) (found []index.Vector, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list vectors: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	err = s.read(ctx, func(conn *connection) error {
		return conn.query(selectVectors, []any{query.ConversationID, query.From, query.To, query.Model, query.Limit}, func(rows *sql.Rows) error {
			var v index.Vector
			err := rows.Scan(&v.Seq, &v.Values)
			found = append(found, v)
			return err
		})
	})
	return found, err
}

// forgetVectors removes the vectors of a conversation.
func forgetVectors(conn *connection, conversationID string) error {
	if _, err := conn.exec(deleteVectors, conversationID); err != nil {
		return err
	}
	_, err := conn.exec(deleteEmbedded, conversationID)
	return err
}
