package postgres

import (
	"context"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

const (
	// The statement returns a row whether or not the blob was stored before.
	insertBlob = `
WITH kept AS (INSERT INTO continuo.blobs (hash, data) VALUES ($1, $2) ON CONFLICT DO NOTHING)
SELECT 1`

	insertBlobs = `,
stored AS (
  INSERT INTO continuo.blobs (hash, data)
  SELECT b.hash, b.data FROM %s, unnest($%d::text[], $%d::bytea[]) AS b (hash, data) ORDER BY b.hash
  ON CONFLICT DO NOTHING)`

	selectBlob = `SELECT data FROM continuo.blobs WHERE hash = $1`
)

// withBlobs adds blobs to a statement whose last part is end, and which writes if its part of the name source has a row.
func withBlobs(blobs []continuo.Blob, source, statement, end string, args []any) (string, []any) {
	if len(blobs) == 0 {
		return statement, args
	}
	var hashes []string
	var datas [][]byte
	for _, blob := range blobs {
		data := blob.Data
		if data == nil {
			data = []byte{} // nil would be NULL
		}
		hashes, datas = append(hashes, blob.Hash), append(datas, data)
	}
	n := len(args)
	return strings.TrimSuffix(statement, end) + fmt.Sprintf(insertBlobs, source, n+1, n+2) + end, append(args, hashes, datas)
}

func sizeOf(blobs []continuo.Blob) (size int) {
	for _, blob := range blobs {
		size += len(blob.Data)
	}
	return size
}

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
