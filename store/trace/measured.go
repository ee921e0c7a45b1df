package trace

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// These operations are measured and have no spans: they also run outside of turns.

// Create is part of [continuo.Store].
func (s *store) Create(ctx context.Context, conversation continuo.Conversation, entries []continuo.Entry) (err error) {
	defer s.measure(ctx, "create")(&err)
	return s.Store.Create(ctx, conversation, entries)
}

// Conversation is part of [continuo.Store].
func (s *store) Conversation(ctx context.Context, id string) (found continuo.Conversation, err error) {
	defer s.measure(ctx, "conversation")(&err)
	return s.Store.Conversation(ctx, id)
}

// ConversationsByID is part of [continuo.Store].
func (s *store) ConversationsByID(ctx context.Context, ids []string) (found []continuo.Conversation, err error) {
	defer s.measure(ctx, "conversation")(&err)
	return s.Store.ConversationsByID(ctx, ids)
}

// ConversationByKey is part of [continuo.Store].
func (s *store) ConversationByKey(ctx context.Context, projectID, key string) (found continuo.Conversation, err error) {
	defer s.measure(ctx, "conversation")(&err)
	return s.Store.ConversationByKey(ctx, projectID, key)
}

// Update is part of [continuo.Store].
func (s *store) Update(ctx context.Context, id string, change continuo.ConversationChange) (changed continuo.Conversation, err error) {
	defer s.measure(ctx, "update")(&err)
	return s.Store.Update(ctx, id, change)
}

// Revision is part of [continuo.Store].
func (s *store) Revision(ctx context.Context, conversationID string) (revision int64, err error) {
	defer s.measure(ctx, "revision")(&err)
	return s.Store.Revision(ctx, conversationID)
}

// Receipt is part of [continuo.Store].
func (s *store) Receipt(ctx context.Context, conversationID, key string) (found continuo.Receipt, err error) {
	defer s.measure(ctx, "receipt")(&err)
	return s.Store.Receipt(ctx, conversationID, key)
}

// AdvanceReceipt is part of [continuo.Store].
func (s *store) AdvanceReceipt(ctx context.Context, conversationID string, receipt continuo.Receipt) (kept continuo.Receipt, err error) {
	defer s.measure(ctx, "advance_receipt")(&err)
	return s.Store.AdvanceReceipt(ctx, conversationID, receipt)
}

// TakeTurn is part of [continuo.Store].
func (s *store) TakeTurn(ctx context.Context, seen continuo.Turn, owner string, lease time.Duration) (taken continuo.Turn, err error) {
	defer s.measure(ctx, "take_turn")(&err)
	return s.Store.TakeTurn(ctx, seen, owner, lease)
}

// Runs is part of [continuo.Store].
func (s *store) Runs(ctx context.Context, query continuo.RunQuery) (found []continuo.Run, err error) {
	defer s.measure(ctx, "runs")(&err)
	return s.Store.Runs(ctx, query)
}

// TakeLease is part of [continuo.Store].
func (s *store) TakeLease(ctx context.Context, name, owner string, over int64) (held continuo.Lease, err error) {
	defer s.measure(ctx, "take_lease")(&err)
	return s.Store.TakeLease(ctx, name, owner, over)
}

// measure starts to measure an operation and returns the function to call at its end, with a pointer to its
// error.
func (s *store) measure(ctx context.Context, operation string) (end func(err *error)) {
	begin := time.Now()
	return func(err *error) { s.record(ctx, operation, begin, *err) }
}
