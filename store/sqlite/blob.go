package sqlite

import (
	"context"

	continuo "github.com/continuo-log/continuo"
)

const (
	insertBlob = `INSERT INTO blobs (hash, data) VALUES (?, ?) ON CONFLICT DO NOTHING`

	selectBlob = `SELECT data FROM blobs WHERE hash = ?`
)

// PutBlob is part of continuo.BlobStore.
func (s *Store) PutBlob(ctx context.Context, hash string, data []byte) error {
	blobs := []continuo.Blob{{Hash: hash, Data: data}}
	return s.write(ctx, func(conn *connection) error { return putBlobs(conn, blobs) })
}

func putBlobs(conn *connection, blobs []continuo.Blob) error {
	for _, blob := range blobs {
		data := blob.Data
		if data == nil {
			data = []byte{} // nil would be NULL
		}
		if _, err := conn.exec(insertBlob, blob.Hash, data); err != nil {
			return err
		}
	}
	return nil
}

// Blob is part of continuo.BlobStore.
func (s *Store) Blob(ctx context.Context, hash string) (data []byte, err error) {
	err = s.read(ctx, func(conn *connection) error {
		return orNotFound(conn.row(selectBlob, []any{hash}, &data))
	})
	return data, err
}
