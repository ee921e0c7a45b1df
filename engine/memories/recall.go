package memories

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
	"github.com/continuo-log/continuo/recall"
)

// DefaultRecalled is how many facts a recall gives at most where the caller sets no limit.
const DefaultRecalled = 10

// Recall lists the facts of a memory that hold and have to do with a text, the most likely ones first.
func (m *Memories) Recall(ctx context.Context, scope continuo.Scope, owner Owner, query string, limit int) ([]Fact, error) {
	if err := m.catchUp(ctx, scope, owner); err != nil {
		return nil, err
	}
	conversation, known, err := m.known(ctx, scope, owner)
	if err != nil {
		return nil, err
	}
	var documents []recall.Document
	var held []*memory.Known
	now := m.log.Now()
	for i := range known {
		if k := &known[i]; k.Holds(now) {
			held = append(held, k)
			documents = append(documents, recall.Document{
				ConversationID: conversation.ID, Seq: k.Seq, Role: continuo.User, Speaker: k.Subject, At: k.ValidFrom,
				Text: k.Text, Tokens: m.counter().Count(k.Text),
			})
		}
	}
	facts := []Fact{}
	for _, scored := range recall.Rank(query, recall.Statistics{}, documents) {
		k := held[scored.Index]
		if limit > 0 && len(facts) == limit {
			break
		}
		if !memory.Relates(query, k) {
			continue // the ranker orders all documents, those without any common word too
		}
		facts = append(facts, factOf(conversation, k))
	}
	return facts, nil
}
