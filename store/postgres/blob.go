package postgres

import "context"

const (
	// The statement returns a row whether or not the blob was stored before.
	insertBlob = `
WITH kept AS (INSERT INTO continuo.blobs (hash, data) VALUES ($1, $2) ON CONFLICT DO NOTHING)
SELECT 1`

	selectBlob = `SELECT data FROM continuo.blobs WHERE hash = $1`
)

// PutBlob is part of continuo.BlobStore.
func (s *Store) PutBlob(ctx context.Context, hash string, data []byte) error {
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	return s.write(ctx, &change{key: hash, statement: insertBlob, args: []any{hash, data}, size: len(data)})
}

// Blob is part of continuo.BlobStore.
func (s *Store) Blob(ctx context.Context, hash string) (data []byte, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		return orNotFound(q.QueryRow(ctx, selectBlob, hash).Scan(&data))
	})
	return data, err
}
