package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
)

func (m *memory) Redact(ctx context.Context, conversationID string, entries []continuo.Entry) error {
	encoded, err := encodeMemory(entries)
	for _, e := range entries {
		if e.ConversationID != conversationID {
			err = fmt.Errorf("redact: %w: an entry of conversation %q", continuo.ErrInvalid, e.ConversationID)
		}
	}
	if err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c := m.find(conversationID)
	if c == nil {
		return continuo.ErrNotFound
	}
	if !c.ArchivedAt.IsZero() {
		return continuo.ErrArchived
	}
	searchHits := make([]int, len(encoded))
	for i, e := range encoded {
		searchHits[i] = slices.IndexFunc(c.entries, func(old memoryEntry) bool { return old.seq == e.seq && old.id == e.id })
		if searchHits[i] < 0 {
			return fmt.Errorf("%w: entry %s at seq %d", continuo.ErrNotFound, e.id, e.seq)
		}
	}
	for _, position := range searchHits {
		if running := c.running(); running != nil && running.ID == c.entries[position].turnID {
			return &continuo.BusyError{Turn: running.at(memoryNow())}
		}
	}
	for i, e := range encoded {
		m.redact(c, searchHits[i], e)
	}
	c.Revision++
	m.dropPrefixes(c.ID, entries)
	c.touch(entries)
	return nil
}

func (c *memoryConversation) touch(redacted []continuo.Entry) {
	var latest time.Time
	for _, e := range redacted {
		if e.Redacted != nil && e.Redacted.At.After(latest) {
			latest = e.Redacted.At
		}
	}
	switch {
	case latest.IsZero():
	case latest.After(c.UpdatedAt):
		c.UpdatedAt = latest
	default:
		c.UpdatedAt = c.UpdatedAt.Add(1)
	}
}

func (m *memory) redact(c *memoryConversation, position int, by memoryEntry) {
	if t := c.turn(c.entries[position].turnID); t != nil {
		t.events, t.signals, t.LastEvent = nil, nil, 0
	}
	delete(c.documents, by.seq)
	delete(c.vectors, by.seq)
	c.entries[position] = by
	var needs []memoryNeed
	for _, id := range by.objects {
		needs = append(needs, memoryNeed{by.seq, id})
	}
	old := c.needs
	c.needs = append(slices.DeleteFunc(slices.Clone(old), func(n memoryNeed) bool { return n.seq == by.seq }), needs...)
	m.discardUnneeded(c, old)
}

// dropNeeds removes needs, and discards the objects that are no longer needed.
func (m *memory) dropNeeds(c *memoryConversation, which func(memoryNeed) bool) {
	old := slices.Clone(c.needs)
	c.needs = slices.DeleteFunc(c.needs, which)
	m.discardUnneeded(c, old)
}

func (m *memory) discardUnneeded(c *memoryConversation, old []memoryNeed) {
	for _, n := range old {
		if !slices.ContainsFunc(c.needs, func(kept memoryNeed) bool { return kept.id == n.id }) {
			m.discard(continuo.ObjectName(c.ID, n.id))
		}
	}
}

func (m *memory) discard(name string) {
	if !slices.Contains(m.discards, name) {
		m.discards = append(m.discards, name)
	}
}

func (m *memory) Discards(ctx context.Context, limit int) ([]string, error) {
	if limit < 1 {
		return nil, fmt.Errorf("list discards: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return slices.Clone(m.discards[:min(limit, len(m.discards))]), nil
}

func (m *memory) Discarded(ctx context.Context, names []string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.discards = slices.DeleteFunc(m.discards, func(name string) bool { return slices.Contains(names, name) })
	return nil
}
