package postgres

import (
	"context"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/jackc/pgx/v5"
)

const (
	embeddedSeq = `coalesce((SELECT seq FROM continuo.embedded WHERE conversation_id = conversations.id AND model = $1), fork_seq)`

	selectUnembedded = `SELECT ` + conversationColumns + `, ` + embeddedSeq + `, indexed_seq FROM continuo.conversations
WHERE id > $2 AND NOT deleted AND archived_at IS NULL AND indexed_seq > ` + embeddedSeq + ` ORDER BY id LIMIT $3`

	// It locks the conversation, as redactions do: one was either committed before and is seen, or runs afterwards.
	lockEmbedded = `SELECT ` + embeddedSeq + `, indexed_seq FROM continuo.conversations WHERE id = $2 AND NOT deleted AND archived_at IS NULL FOR UPDATE`

	deleteOtherVectors = `
DELETE FROM continuo.vectors WHERE conversation_id = $1
AND NOT EXISTS (SELECT 1 FROM continuo.embedded WHERE conversation_id = $1 AND model = $2)`

	putEmbedded = `
INSERT INTO continuo.embedded (conversation_id, model, seq) VALUES ($1, $2, $3)
ON CONFLICT (conversation_id) DO UPDATE SET model = excluded.model, seq = excluded.seq`

	insertVectors = `
INSERT INTO continuo.vectors (conversation_id, seq, vector)
SELECT $1::text, seq, vector FROM unnest($2::bigint[], $3::bytea[]) AS made (seq, vector)
WHERE NOT EXISTS (SELECT 1 FROM continuo.entries AS entry WHERE entry.conversation_id = $1 AND entry.seq = made.seq AND entry.redacted)`

	selectVectors = `
SELECT seq, vector FROM continuo.vectors WHERE conversation_id = $1 AND seq BETWEEN $2 AND $3
AND EXISTS (SELECT 1 FROM continuo.embedded WHERE conversation_id = $1 AND model = $4) ORDER BY seq DESC LIMIT $5`

	deleteSomeVectors = `DELETE FROM continuo.vectors WHERE conversation_id = $1 AND seq = ANY ($2)`

	deleteAllVectors = `DELETE FROM continuo.vectors WHERE conversation_id = $1`
	deleteEmbedded   = `DELETE FROM continuo.embedded WHERE conversation_id = $1`
)

// Unembedded is part of index.Store.
func (s *Store) Unembedded(ctx context.Context, query index.UnembeddedQuery) (found []index.Unembedded, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list what has no vectors: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, selectUnembedded, query.Model, query.After, query.Limit)
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (u index.Unembedded, err error) {
			u.Conversation, err = scanConversation(row, &u.Embedded, &u.Indexed)
			return u, err
		})
		return err
	})
	return found, err
}

// Embed is part of index.Store.
func (s *Store) Embed(ctx context.Context, batch index.VectorBatch) error {
	if err := batch.Check(); err != nil {
		return err
	}
	id := batch.ConversationID
	return s.transact(ctx, "embed conversation "+id, func(ctx context.Context, tx pgx.Tx) error {
		var at, indexed int64
		if err := tx.QueryRow(ctx, lockEmbedded, batch.Model, id).Scan(&at, &indexed); err != nil {
			return orNotFound(err)
		}
		if at != batch.After || batch.Through > indexed {
			return &continuo.ConflictError{Want: batch.After + 1, Have: at + 1}
		}
		if _, err := tx.Exec(ctx, deleteOtherVectors, id, batch.Model); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, putEmbedded, id, batch.Model, batch.Through); err != nil {
			return err
		}
		seqs, vectors := make([]int64, len(batch.Vectors)), make([][]byte, len(batch.Vectors))
		for i, vector := range batch.Vectors {
			seqs[i], vectors[i] = vector.Seq, vector.Values
		}
		_, err := tx.Exec(ctx, insertVectors, id, seqs, vectors)
		return err
	}, func(ctx context.Context, q querier) (committed bool, err error) {
		err = q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM continuo.embedded WHERE conversation_id = $1 AND model = $2 AND seq >= $3)`, id, batch.Model, batch.Through).Scan(&committed)
		return committed, err
	})
}

// Vectors is part of index.Store.
func (s *Store) Vectors(ctx context.Context, query index.VectorQuery) (found []index.Vector, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list vectors: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, selectVectors, query.ConversationID, query.From, query.To, query.Model, query.Limit)
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (v index.Vector, err error) {
			err = row.Scan(&v.Seq, &v.Values)
			return v, err
		})
		return err
	})
	return found, err
}
