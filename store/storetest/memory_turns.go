package storetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

type memoryTurn struct {
	continuo.Turn
	events  [][]continuo.TurnEvent // the events of each update
	signals []continuo.TurnSignal
}

// at returns the turn as callers see it at a time.
func (t *memoryTurn) at(now time.Time) continuo.Turn {
	seen := t.Turn
	seen.LeaseExpired = t.State == continuo.TurnRunning && !now.Before(t.LeaseUntil)
	return seen
}

func (c *memoryConversation) turn(id string) *memoryTurn {
	for _, t := range c.turns {
		if t.ID == id {
			return t
		}
	}
	return nil
}

func (c *memoryConversation) running() *memoryTurn {
	for _, t := range c.turns {
		if t.State == continuo.TurnRunning {
			return t
		}
	}
	return nil
}

// nextFence returns a fencing token above that of any earlier turn.
func (c *memoryConversation) nextFence() int64 {
	highest := int64(0)
	for _, t := range c.turns {
		highest = max(highest, t.Fence)
	}
	return highest + 1
}

// findTurn finds a turn of a conversation that is not deleted; nil when there is none.
func (m *memory) findTurn(conversationID, turnID string) *memoryTurn {
	if c, err := m.live(conversationID); err == nil {
		return c.turn(turnID)
	}
	return nil
}

// checkMemoryBegin checks the parts of a batch's TurnBegin that do not depend on the conversation.
func checkMemoryBegin(batch continuo.Batch) error {
	begin := batch.Begin
	switch {
	case begin == nil:
		return nil
	case begin.Turn.ConversationID != batch.ConversationID:
		return fmt.Errorf("begin turn %s: %w: it is of conversation %q, and the batch of %q", begin.Turn.ID, continuo.ErrInvalid, begin.Turn.ConversationID, batch.ConversationID)
	case len(batch.Turns) > 0:
		return fmt.Errorf("begin turn %s: %w: its batch has updates of turns", begin.Turn.ID, continuo.ErrInvalid)
	}
	err := checkMemoryTexts("turn", begin.Turn.ID, begin.Turn.Owner)
	return errors.Join(err, checkMemoryUpdate(continuo.TurnUpdate{TurnID: begin.Turn.ID, Events: begin.Events, Mode: begin.Mode, Agent: begin.Agent}))
}

// mayBegin checks that a turn may begin.
func (c *memoryConversation) mayBegin(begin *continuo.TurnBegin, now time.Time) error {
	if begin == nil {
		return nil
	}
	if same := c.turn(begin.Turn.ID); same != nil && same.State != continuo.TurnVoid {
		return fmt.Errorf("%w: turn %s", continuo.ErrExists, begin.Turn.ID)
	}
	if other := c.running(); other != nil {
		return &continuo.BusyError{Turn: other.at(now)}
	}
	return nil
}

// beginTurn begins a turn that passed mayBegin.
func (c *memoryConversation) beginTurn(begin *continuo.TurnBegin, now time.Time) {
	if begin == nil {
		return
	}
	turn := begin.Turn
	started := now // after the previous turn, even if the clock was set back
	for _, t := range c.turns {
		if !started.After(t.StartedAt) {
			started = t.StartedAt.Add(time.Nanosecond)
		}
	}
	begun := &memoryTurn{Turn: continuo.Turn{
		ID: turn.ID, ConversationID: turn.ConversationID, State: continuo.TurnRunning, TurnRequest: turn.TurnRequest,
		Owner: turn.Owner, Fence: c.nextFence(), LeaseUntil: now.Add(begin.Lease), StartedAt: started,
	}}
	if n := len(begin.Events); n > 0 {
		begun.events, begun.LastEvent = [][]continuo.TurnEvent{cloneEvents(begin.Events)}, begin.Events[n-1].ID
	}
	c.turns = append(slices.DeleteFunc(c.turns, func(t *memoryTurn) bool { return t.ID == turn.ID }), begun)
	c.switchMode(continuo.TurnUpdate{Mode: begin.Mode, Agent: begin.Agent})
	begin.Begun = begun.at(now)
}

func memoryNow() time.Time { return time.Now().UTC().Round(0) }

func (m *memory) TakeTurn(ctx context.Context, seen continuo.Turn, owner string, lease time.Duration) (continuo.Turn, error) {
	if err := m.begin(ctx); err != nil {
		return continuo.Turn{}, err
	}
	defer m.mu.Unlock()
	t := m.findTurn(seen.ConversationID, seen.ID)
	if t == nil || t.State != continuo.TurnRunning || t.Fence != seen.Fence {
		return continuo.Turn{}, fmt.Errorf("take turn %s: %w", seen.ID, continuo.ErrLeaseLost)
	}
	now := memoryNow()
	t.Owner, t.Fence, t.LeaseUntil = owner, m.find(seen.ConversationID).nextFence(), now.Add(lease)
	return t.at(now), nil
}

func (m *memory) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	if err := checkMemoryUpdate(update); err != nil {
		return nil, err
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	t := m.findTurn(update.ConversationID, update.TurnID)
	next, err := updatedTurn(t, update, memoryNow())
	if err != nil {
		return nil, err
	}
	*t = next
	m.find(update.ConversationID).switchMode(update)
	m.record(m.find(update.ConversationID), update)
	for _, blob := range update.Blobs {
		m.putBlob(blob.Hash, blob.Data)
	}
	return slices.Clone(t.signals[min(max(update.SignalsSeen, 0), len(t.signals)):]), nil
}

// checkMemoryUpdate checks the parts of an update that do not depend on its turn.
func checkMemoryUpdate(update continuo.TurnUpdate) error {
	switch update.State {
	case "", continuo.TurnFinished, continuo.TurnFailed, continuo.TurnVoid:
	default:
		return fmt.Errorf("update turn %s: %w: state %q ends no turn", update.TurnID, continuo.ErrInvalid, update.State)
	}
	if err := checkMemoryTexts("update turn "+update.TurnID, string(update.Mode), update.Agent); err != nil {
		return err
	}
	if err := checkMemoryCharges(update.Charges); err != nil {
		return err
	}
	last := int64(0)
	for _, event := range update.Events {
		if event.ID <= last {
			return fmt.Errorf("update turn %s: %w: event %d after event %d", update.TurnID, continuo.ErrInvalid, event.ID, last)
		}
		last = event.ID
		if !json.Valid(event.Data) || event.Data[0] != '{' || event.Data[len(event.Data)-1] != '}' {
			return fmt.Errorf("update turn %s: %w: the data of event %d is not a JSON object", update.TurnID, continuo.ErrInvalid, event.ID)
		}
	}
	return nil
}

// updatedTurn returns a turn, which may be nil, as it is after an update that passed checkMemoryUpdate.
func updatedTurn(t *memoryTurn, update continuo.TurnUpdate, now time.Time) (memoryTurn, error) {
	if t == nil || t.State != continuo.TurnRunning || t.Fence != update.Fence {
		return memoryTurn{}, fmt.Errorf("update turn %s: %w", update.TurnID, continuo.ErrLeaseLost)
	}
	next := *t
	if len(update.Events) > 0 {
		if update.Events[0].ID <= t.LastEvent {
			return memoryTurn{}, fmt.Errorf("update turn %s: %w: event %d after event %d", update.TurnID, continuo.ErrInvalid, update.Events[0].ID, t.LastEvent)
		}
		next.events = append(slices.Clip(t.events), cloneEvents(update.Events))
		next.LastEvent = update.Events[len(update.Events)-1].ID
	}
	switch {
	case update.Lease > 0:
		next.LeaseUntil = now.Add(update.Lease)
	case update.Lease < 0:
		next.LeaseUntil = time.Time{}
	}
	if update.State != "" {
		next.LeaseUntil = time.Time{}
		next.State, next.TurnEnd, next.EndedAt = update.State, update.End, now
	}
	return next, nil
}

func cloneEvents(events []continuo.TurnEvent) []continuo.TurnEvent {
	cloned := slices.Clone(events)
	for i := range cloned {
		cloned[i].Data = bytes.Clone(cloned[i].Data)
	}
	return cloned
}

// updatedTurns applies a batch's updates to copies of the turns, so that all are checked before any is
// applied.
func (c *memoryConversation) updatedTurns(updates []continuo.TurnUpdate) ([]*memoryTurn, error) {
	turns := slices.Clone(c.turns)
	for _, update := range updates {
		if err := checkMemoryUpdate(update); err != nil {
			return nil, err
		}
		if update.ConversationID != c.ID {
			return nil, fmt.Errorf("%w: an update of a turn of conversation %q in a batch for %q", continuo.ErrInvalid, update.ConversationID, c.ID)
		}
		i := slices.IndexFunc(turns, func(t *memoryTurn) bool { return t.ID == update.TurnID })
		var before *memoryTurn
		if i >= 0 {
			before = turns[i]
		}
		next, err := updatedTurn(before, update, memoryNow())
		if err != nil {
			return nil, err
		}
		turns[i] = &next
	}
	return turns, nil
}

// switchMode gives the conversation the mode and the agent of an update.
func (c *memoryConversation) switchMode(update continuo.TurnUpdate) {
	if update.Mode != "" {
		c.ActiveMode = update.Mode
	}
	if update.Agent != "" {
		c.ActiveAgent = update.Agent
	}
}

func (m *memory) SignalTurn(ctx context.Context, conversationID, turnID string, signal continuo.TurnSignal) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	t := m.findTurn(conversationID, turnID)
	switch {
	case t == nil:
		return continuo.ErrNotFound
	case t.State != continuo.TurnRunning:
		return continuo.ErrNotRunning
	}
	t.signals = append(t.signals, signal)
	return nil
}

func (m *memory) Turn(ctx context.Context, conversationID, turnID string) (continuo.Turn, error) {
	if err := m.begin(ctx); err != nil {
		return continuo.Turn{}, err
	}
	defer m.mu.Unlock()
	t := m.findTurn(conversationID, turnID)
	if t == nil {
		return continuo.Turn{}, continuo.ErrNotFound
	}
	return t.at(memoryNow()), nil
}

func (m *memory) Turns(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	before := continuo.Turn{StartedAt: query.Before.StartedAt, ID: query.Before.ID}
	wanted := func(t *memoryTurn) bool {
		return t.ConversationID == query.ConversationID && t.State != continuo.TurnVoid &&
			(query.Before == (continuo.TurnCursor{}) || newestTurnFirst(t, &memoryTurn{Turn: before}) > 0)
	}
	return m.selectTurns(ctx, wanted, newestTurnFirst, query.Limit)
}

func newestTurnFirst(a, b *memoryTurn) int {
	return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(b.ID, a.ID))
}

func (m *memory) RunningTurns(ctx context.Context, limit int) ([]continuo.Turn, error) {
	wanted := func(t *memoryTurn) bool { return t.State == continuo.TurnRunning }
	firstToEnd := func(a, b *memoryTurn) int {
		return cmp.Or(a.LeaseUntil.Compare(b.LeaseUntil), cmp.Compare(a.ConversationID, b.ConversationID), cmp.Compare(a.ID, b.ID))
	}
	return m.selectTurns(ctx, wanted, firstToEnd, limit)
}

func (m *memory) selectTurns(ctx context.Context, wanted func(*memoryTurn) bool, order func(a, b *memoryTurn) int, limit int) ([]continuo.Turn, error) {
	if limit < 1 {
		return nil, fmt.Errorf("list turns: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var found []*memoryTurn
	for _, c := range m.conversations {
		for _, t := range c.turns {
			if wanted(t) {
				found = append(found, t)
			}
		}
	}
	slices.SortFunc(found, order)
	var turns []continuo.Turn
	for _, t := range found[:min(len(found), limit)] {
		turns = append(turns, t.at(memoryNow()))
	}
	return turns, nil
}

// eventPageBytes is about how many bytes of events one read returns.
const eventPageBytes = 256 << 10

func (m *memory) TurnEvents(ctx context.Context, conversationID, turnID string, after int64, limit int) ([]continuo.TurnEvent, error) {
	if limit < 1 {
		return nil, fmt.Errorf("read events of turn %s: %w: limit %d is less than 1", turnID, continuo.ErrInvalid, limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	t := m.findTurn(conversationID, turnID)
	if t == nil {
		return nil, nil
	}
	var found []continuo.TurnEvent
	bytes := 0
	for _, together := range t.events {
		for _, event := range together {
			if event.ID > after {
				found = append(found, event)
				bytes += len(event.Data)
			}
		}
		if len(found) >= limit || bytes >= eventPageBytes {
			break
		}
	}
	return cloneEvents(found), nil
}

func (m *memory) PruneTurnEvents(ctx context.Context, endedBefore time.Time, limit int) (int, error) {
	if limit < 1 {
		return 0, fmt.Errorf("prune events of turns: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	pruned := 0
	for _, c := range m.conversations {
		for _, t := range c.turns {
			old := t.State != continuo.TurnRunning && t.EndedAt.Before(endedBefore)
			if !old || len(t.events)+len(t.signals) == 0 || pruned == limit {
				continue
			}
			t.events, t.signals, t.LastEvent = nil, nil, 0
			pruned++
		}
	}
	return pruned, nil
}
