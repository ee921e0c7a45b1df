package sqlite

import (
	"context"

	continuo "github.com/continuo-log/continuo"
)

const (
	insertOutput = `INSERT INTO outputs (conversation_id, id, piece, data) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`

	selectOutput = `SELECT data FROM outputs WHERE conversation_id = ? AND id = ? AND piece = ?`
)

// PutOutput is part of continuo.OutputStore.
func (s *Store) PutOutput(ctx context.Context, conversationID, id string, piece int, data []byte) error {
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	return s.write(ctx, func(conn *connection) error {
		_, err := conn.exec(insertOutput, conversationID, id, piece, data)
		return err
	})
}

// OutputPiece is part of continuo.OutputStore.
func (s *Store) OutputPiece(ctx context.Context, conversationID, id string, piece int) (data []byte, err error) {
	err = s.read(ctx, func(conn *connection) error {
		return orNotFound(conn.row(selectOutput, []any{conversationID, id, piece}, &data))
	})
	return data, err
}

// outputID is the column by which the pieces that an entry needs are known; nil for none.
func outputID(e *continuo.Entry) any {
	if e.Output == nil {
		return nil
	}
	return orNull(e.Output.ID)
}
