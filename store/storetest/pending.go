package storetest

import (
	"context"
	"errors"
	"time"

	continuo "github.com/continuo-log/continuo"
)

var errPending = errors.New("pending")

func (s *memory) Redact(ctx context.Context, conversationID string, entries []continuo.Entry) error {
	return errPending
}

func (s *memory) Discards(ctx context.Context, limit int) ([]string, error) { return nil, nil }

func (s *memory) Discarded(ctx context.Context, names []string) error { return errPending }

func (s *memory) Unindexed(ctx context.Context, query continuo.UnindexedQuery) ([]continuo.Unindexed, error) {
	return nil, errPending
}

func (s *memory) Index(ctx context.Context, batch continuo.IndexBatch) error { return errPending }

func (s *memory) Places(ctx context.Context, query continuo.PlaceQuery) ([]continuo.Place, error) {
	return nil, errPending
}

func (s *memory) ForgetIndex(ctx context.Context, conversationID string) error { return errPending }

func (s *memory) CreateProject(ctx context.Context, project continuo.Project) error {
	return errPending
}

func (s *memory) Projects(ctx context.Context) ([]continuo.Project, error) { return nil, errPending }

func (s *memory) CreateKey(ctx context.Context, key continuo.APIKey) error { return errPending }

func (s *memory) Key(ctx context.Context, id string) (continuo.APIKey, error) {
	return continuo.APIKey{}, errPending
}

func (s *memory) Keys(ctx context.Context, projectID string) ([]continuo.APIKey, error) {
	return nil, errPending
}

func (s *memory) RevokeKey(ctx context.Context, id string, at time.Time) (continuo.APIKey, error) {
	return continuo.APIKey{}, errPending
}

func (s *memory) ConversationIDs(ctx context.Context, after string, limit int) ([]string, error) {
	return nil, errPending
}

func (s *memory) Records(ctx context.Context, conversationID string, after continuo.RecordPlace, limit int) ([]continuo.Record, error) {
	return nil, errPending
}

func (s *memory) PutRecords(ctx context.Context, conversationID string, records []continuo.Record) error {
	return errPending
}

func (s *memory) Archive(ctx context.Context, conversationID string, lastSeq int64, at time.Time) error {
	return errPending
}

func (s *memory) Restore(ctx context.Context, conversationID string) error { return errPending }

func (s *memory) BlobHashes(ctx context.Context, after string, limit int) ([]string, error) {
	return nil, errPending
}
