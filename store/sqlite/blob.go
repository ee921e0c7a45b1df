package sqlite

import "context"

const (
	insertBlob = `INSERT INTO blobs (hash, data) VALUES (?, ?) ON CONFLICT DO NOTHING`

	selectBlob = `SELECT data FROM blobs WHERE hash = ?`
)

// PutBlob is part of continuo.BlobStore.
func (s *Store) PutBlob(ctx context.Context, hash string, data []byte) error {
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	return s.write(ctx, func(conn *connection) error {
		_, err := conn.exec(insertBlob, hash, data)
		return err
	})
}

// Blob is part of continuo.BlobStore.
func (s *Store) Blob(ctx context.Context, hash string) (data []byte, err error) {
	err = s.read(ctx, func(conn *connection) error {
		return orNotFound(conn.row(selectBlob, []any{hash}, &data))
	})
	return data, err
}
