package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// record adds what the requests of an update used, and the turn if the update ended it.
func (m *memory) record(c *memoryConversation, update continuo.TurnUpdate) {
	m.spending = append(m.spending, update.Charges...)
	if update.State != continuo.TurnFinished && update.State != continuo.TurnFailed {
		return
	}
	t := c.turn(update.TurnID)
	m.lastFinished++
	m.finished = append(m.finished, continuo.FinishedTurn{
		Position: m.lastFinished, ProjectID: c.ProjectID, ConversationID: c.ID, TurnID: t.ID, UserID: c.UserID, KeyID: t.KeyID,
		State: t.State, EndedAt: t.EndedAt, TurnEnd: t.TurnEnd,
	})
}

func checkMemoryCharges(charges []continuo.Spending) error {
	for _, c := range charges {
		if err := checkMemoryTexts("charge a request", c.ProjectID, c.KeyID, c.Day, c.UserID, c.Provider, c.Model); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Charge(ctx context.Context, charges []continuo.Spending) error {
	if err := checkMemoryCharges(charges); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.spending = append(m.spending, charges...)
	return nil
}

func (m *memory) Spent(ctx context.Context, query continuo.SpendingQuery) ([]continuo.Spending, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	sums := map[continuo.Spending]continuo.Spent{}
	for _, row := range m.spending {
		if query.ProjectID != "" && row.ProjectID != query.ProjectID || query.KeyID != nil && row.KeyID != *query.KeyID ||
			query.UserID != nil && row.UserID != *query.UserID || query.From != "" && row.Day < query.From || query.To != "" && row.Day > query.To {
			continue
		}
		sum := sums[query.Key(row)]
		sum.Add(row.Spent)
		sums[query.Key(row)] = sum
	}
	var found []continuo.Spending
	for key, sum := range sums {
		key.Spent = sum
		found = append(found, key)
	}
	slices.SortFunc(found, query.Compare)
	return found, nil
}

func (m *memory) FinishedTurns(ctx context.Context, query continuo.FeedQuery) (found []continuo.FinishedTurn, err error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list finished turns: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	asked := func(t continuo.FinishedTurn) bool {
		return t.Position > query.After && (query.ProjectID == "" || t.ProjectID == query.ProjectID) && (query.UserID == "" || t.UserID == query.UserID)
	}
	if query.After >= 0 && slices.ContainsFunc(m.pruned, asked) {
		return nil, continuo.ErrFeedPruned
	}
	for _, t := range m.finished {
		if asked(t) && len(found) < query.Limit {
			found = append(found, t)
		}
	}
	return found, nil
}

func (m *memory) PruneFinished(ctx context.Context, before time.Time, through int64, limit int) (removed int, err error) {
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	for removed < min(limit, len(m.finished)) && m.finished[removed].EndedAt.Before(before) && m.finished[removed].Position <= through {
		removed++
	}
	m.pruned = append(m.pruned, m.finished[:removed]...)
	m.finished = m.finished[removed:]
	return removed, nil
}

func (m *memory) LastFinished(ctx context.Context) (int64, error) {
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	return m.lastFinished, nil
}

func (m *memory) FeedPosition(ctx context.Context, name string) (int64, error) {
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	position, ok := m.positions[name]
	if !ok {
		return 0, continuo.ErrNotFound
	}
	return position, nil
}

func (m *memory) SetFeedPosition(ctx context.Context, name string, position int64) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if m.positions == nil {
		m.positions = map[string]int64{}
	}
	m.positions[name] = position
	return nil
}
