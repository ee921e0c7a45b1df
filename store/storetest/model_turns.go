package storetest

import (
	"context"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"pgregory.net/rapid"
)

// Turns in the test of random operations. The two stores have clocks of their own, so only the presence of
// times is compared.

func timeless(turn continuo.Turn) continuo.Turn {
	for _, when := range []*time.Time{&turn.LeaseUntil, &turn.StartedAt, &turn.EndedAt} {
		if !when.IsZero() {
			*when = day
		}
	}
	return turn
}

func lease(rt *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{-long, 0, long}).Draw(rt, "lease")
}

func turnID(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"t1", "t2", "t3"}).Draw(rt, "turn")
}

// aTurn returns the running turn, if there is one, or any other.
func (m *model) aTurn(rt *rapid.T, conversationID string) continuo.Turn {
	found := continuo.Turn{ConversationID: conversationID, ID: turnID(rt)}
	if now, err := m.reference.Turn(context.Background(), conversationID, found.ID); err == nil {
		found = now
	}
	turns, err := m.reference.Turns(context.Background(), continuo.TurnQuery{ConversationID: conversationID, Limit: 9})
	if err != nil || rapid.IntRange(0, 4).Draw(rt, "any turn") == 0 {
		return found
	}
	for _, turn := range turns {
		if turn.State == continuo.TurnRunning {
			return turn
		}
	}
	return found
}

// begin makes a batch begin a turn: mostly with entries, and mostly where it may begin.
func (m *model) begin(rt *rapid.T, batch *continuo.Batch) {
	begin := &continuo.TurnBegin{Turn: continuo.Turn{ID: turnID(rt), ConversationID: batch.ConversationID, Owner: "one"}, Lease: lease(rt)}
	begin.Turn.Model = rapid.SampledFrom([]string{"", "m"}).Draw(rt, "model")
	for id := range rapid.Int64Range(0, 2).Draw(rt, "first events") {
		begin.Events = append(begin.Events, event(id+1))
	}
	begin.Mode = rapid.SampledFrom([]continuo.Mode{"", continuo.ModeAgent, continuo.ModeChat}).Draw(rt, "mode")
	begin.Agent = rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, "agent")
	batch.Begin = begin
	if rapid.IntRange(0, 3).Draw(rt, "without entries") == 0 {
		batch.Entries, batch.Receipts, batch.Runs = nil, nil, nil
	}
}

// appendTo appends a batch and returns the turn that began with it.
func appendTo(s maintenance.Store, batch continuo.Batch) (continuo.Turn, error) {
	if batch.Begin == nil {
		return continuo.Turn{}, s.Append(context.Background(), batch)
	}
	own := *batch.Begin
	batch.Begin = &own
	if err := s.Append(context.Background(), batch); err != nil {
		return continuo.Turn{}, err
	}
	return timeless(own.Begun), nil
}

func (m *model) take(rt *rapid.T) {
	seen, lasts := m.aTurn(rt, m.pick(rt).ID), lease(rt)
	seen.Fence -= rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(rt, "stale")
	_, _ = both(rt, m, "take turn", func(s maintenance.Store) (continuo.Turn, error) {
		taken, err := s.TakeTurn(context.Background(), seen, "two", lasts)
		return timeless(taken), err
	})
}

func (m *model) turn(rt *rapid.T) {
	update := m.turnUpdate(rt, m.pick(rt).ID)
	_, _ = both(rt, m, "update turn", func(s maintenance.Store) ([]continuo.TurnSignal, error) {
		signals, err := s.UpdateTurn(context.Background(), update)
		return append([]continuo.TurnSignal{}, signals...), err
	})
}

// turnUpdate returns an update that is mostly allowed.
func (m *model) turnUpdate(rt *rapid.T, conversationID string) continuo.TurnUpdate {
	turn := m.aTurn(rt, conversationID)
	turn.Fence -= rapid.SampledFrom([]int64{0, 0, 0, 0, 1}).Draw(rt, "stale")
	update := updateOf(turn)
	next := turn.LastEvent + rapid.Int64Range(0, 3).Draw(rt, "gap")
	for range rapid.IntRange(0, 3).Draw(rt, "events") {
		next++
		update.Events = append(update.Events, event(next))
	}
	update.Lease = lease(rt)
	update.State = rapid.SampledFrom([]continuo.TurnState{"", "", "", "", continuo.TurnFinished, continuo.TurnFailed, continuo.TurnVoid}).Draw(rt, "state")
	update.End.Usage.InputTokens = rapid.IntRange(0, 9).Draw(rt, "tokens")
	update.Mode = rapid.SampledFrom([]continuo.Mode{"", "", continuo.ModeAgent, continuo.ModeChat}).Draw(rt, "mode")
	update.Agent = rapid.SampledFrom([]string{"", "", "one", "two"}).Draw(rt, "agent")
	update.SignalsSeen = rapid.IntRange(0, 2).Draw(rt, "signals seen")
	return update
}

func (m *model) signal(rt *rapid.T) {
	id, turn := m.pick(rt).ID, turnID(rt)
	signal := continuo.TurnSignal{Kind: continuo.SignalAllow, ToolCallID: rapid.SampledFrom([]string{"c1", "c2"}).Draw(rt, "call")}
	_, _ = both(rt, m, "signal", func(s maintenance.Store) (any, error) {
		return nil, s.SignalTurn(context.Background(), id, turn, signal)
	})
}

// turns compares all turns of a conversation, and the events of one.
func (m *model) turns(rt *rapid.T) {
	id, turn, after := m.pick(rt).ID, turnID(rt), rapid.Int64Range(0, 9).Draw(rt, "after")
	_, _ = both(rt, m, "turns", func(s maintenance.Store) (map[string]continuo.Turn, error) {
		turns, err := s.Turns(context.Background(), continuo.TurnQuery{ConversationID: id, Limit: 9})
		found := map[string]continuo.Turn{} // their order depends on a clock
		for _, t := range turns {
			found[t.ID] = timeless(t)
		}
		return found, err
	})
	_, _ = both(rt, m, "turn", func(s maintenance.Store) (continuo.Turn, error) {
		found, err := s.Turn(context.Background(), id, turn)
		return timeless(found), err
	})
	_, _ = both(rt, m, "events", func(s maintenance.Store) ([]continuo.TurnEvent, error) {
		events, err := s.TurnEvents(context.Background(), id, turn, after, 1000)
		return append([]continuo.TurnEvent{}, events...), err
	})
}
