package sqlite

import (
	"context"
	"errors"
	"time"

	continuo "github.com/continuo-log/continuo"
)

var errPending = errors.New("pending")

func (s *Store) Redact(ctx context.Context, conversationID string, entries []continuo.Entry) error {
	return errPending
}

func (s *Store) Discards(ctx context.Context, limit int) ([]string, error) { return nil, nil }

func (s *Store) Discarded(ctx context.Context, names []string) error { return errPending }

func (s *Store) Unindexed(ctx context.Context, query continuo.UnindexedQuery) ([]continuo.Unindexed, error) {
	return nil, errPending
}

func (s *Store) Index(ctx context.Context, batch continuo.IndexBatch) error { return errPending }

func (s *Store) Places(ctx context.Context, query continuo.PlaceQuery) ([]continuo.Place, error) {
	return nil, errPending
}

func (s *Store) ForgetIndex(ctx context.Context, conversationID string) error { return errPending }

func (s *Store) CreateProject(ctx context.Context, project continuo.Project) error { return errPending }

func (s *Store) Projects(ctx context.Context) ([]continuo.Project, error) { return nil, errPending }

func (s *Store) CreateKey(ctx context.Context, key continuo.APIKey) error { return errPending }

func (s *Store) Key(ctx context.Context, id string) (continuo.APIKey, error) {
	return continuo.APIKey{}, errPending
}

func (s *Store) Keys(ctx context.Context, projectID string) ([]continuo.APIKey, error) {
	return nil, errPending
}

func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time) (continuo.APIKey, error) {
	return continuo.APIKey{}, errPending
}

func (s *Store) ConversationIDs(ctx context.Context, after string, limit int) ([]string, error) {
	return nil, errPending
}

func (s *Store) Records(ctx context.Context, conversationID string, after continuo.RecordPlace, limit int) ([]continuo.Record, error) {
	return nil, errPending
}

func (s *Store) PutRecords(ctx context.Context, conversationID string, records []continuo.Record) error {
	return errPending
}

func (s *Store) Archive(ctx context.Context, conversationID string, lastSeq int64, at time.Time) error {
	return errPending
}

func (s *Store) Restore(ctx context.Context, conversationID string) error { return errPending }

func (s *Store) BlobHashes(ctx context.Context, after string, limit int) ([]string, error) {
	return nil, errPending
}
