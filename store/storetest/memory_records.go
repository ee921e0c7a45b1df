package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
)

func (m *memory) ConversationIDs(ctx context.Context, after string, limit int) ([]string, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var ids []string
	for _, c := range m.conversations {
		ids = append(ids, c.ID)
	}
	return above(ids, after, limit)
}

func (m *memory) BlobHashes(ctx context.Context, after string, limit int) ([]string, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return above(slices.Collect(maps.Keys(m.blobs)), after, limit)
}

func above(names []string, after string, limit int) ([]string, error) {
	if limit < 1 {
		return nil, fmt.Errorf("list: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
	slices.Sort(names)
	return names[:min(limit, len(names))], nil
}

func (m *memory) Records(ctx context.Context, conversationID string, after maintenance.RecordPosition, limit int) ([]maintenance.Record, error) {
	if limit < 1 {
		return nil, fmt.Errorf("read records: %w: limit %d is less than 1", continuo.ErrInvalid, limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	c := m.find(conversationID)
	if c == nil {
		return nil, nil
	}
	all, err := c.records(after)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r maintenance.Record) bool { return comparePositions(r.Position(), after) <= 0 })
	slices.SortFunc(all, func(a, b maintenance.Record) int { return comparePositions(a.Position(), b.Position()) })
	return firstPage(all[:min(limit, len(all))])
}

const pageBytes = 4 << 20

// firstPage cuts records at the size limit of a page.
func firstPage(records []maintenance.Record) ([]maintenance.Record, error) {
	bytes := 0
	for i, r := range records {
		data, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		if bytes += len(data); bytes >= pageBytes {
			return records[:i+1], nil
		}
	}
	return records, nil
}

func comparePositions(a, b maintenance.RecordPosition) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Key, b.Key))
}

// records decodes the records that a page after a place may contain, and more.
func (c *memoryConversation) records(after maintenance.RecordPosition) ([]maintenance.Record, error) {
	own := maintenance.ConversationRecord{Conversation: c.Conversation, Deleted: c.deleted}
	own.Revision = 0
	all := []maintenance.Record{{Conversation: &own}}
	bytes := 0
	for _, e := range c.entries {
		if comparePositions(maintenance.RecordPosition{Kind: maintenance.RecordEntry, Seq: e.seq}, after) <= 0 || bytes > pageBytes {
			continue
		}
		bytes += len(e.body)
		var entry continuo.Entry
		if err := json.Unmarshal(e.body, &entry); err != nil {
			return nil, err
		}
		all = append(all, maintenance.Record{Entry: &entry, Damaged: e.damaged})
	}
	for _, receipt := range c.receipts {
		all = append(all, maintenance.Record{Receipt: &receipt})
	}
	for _, t := range c.turns {
		turn := maintenance.TurnRecord{Turn: t.at(memoryNow()), Signals: slices.Clone(t.signals)}
		for _, together := range t.events {
			turn.Events = append(turn.Events, cloneEvents(together)...)
		}
		all = append(all, maintenance.Record{Turn: &turn})
	}
	for _, prefix := range c.prefixes {
		all = append(all, maintenance.Record{Prefix: &prefix})
	}
	return all, nil
}

func (m *memory) PutRecords(ctx context.Context, conversationID string, records []maintenance.Record) error {
	return m.putRecords(ctx, conversationID, records, func() error { return nil })
}

func (m *memory) PutArchived(ctx context.Context, conversationID string, since time.Time, records []maintenance.Record) error {
	return m.putRecords(ctx, conversationID, records, func() error {
		c, err := m.live(conversationID)
		if err == nil && !c.ArchivedAt.Equal(since) {
			err = fmt.Errorf("write records of conversation %s: %w: it is not archived since %s", conversationID, continuo.ErrInvalid, since)
		}
		return err
	})
}

func (m *memory) putRecords(ctx context.Context, conversationID string, records []maintenance.Record, may func() error) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if err := may(); err != nil {
		return err
	}
	for _, r := range records {
		if err := checkMemoryRecord(conversationID, r); err != nil {
			return fmt.Errorf("write records of conversation %s: %w", conversationID, err)
		}
	}
	before := m.find(conversationID)
	i := slices.IndexFunc(records, func(r maintenance.Record) bool { return r.Conversation != nil })
	if before == nil && i < 0 {
		return fmt.Errorf("write records of conversation %s: %w", conversationID, continuo.ErrNotFound)
	}
	if i >= 0 {
		if err := m.mayPut(records[i].Conversation); err != nil {
			return err
		}
	}
	undo := m.keep(before)
	if i >= 0 {
		m.putConversation(before, records[i].Conversation)
	}
	c := m.find(conversationID)
	for _, r := range records {
		if err := c.put(m, r); err != nil {
			undo()
			return err
		}
	}
	// The time makes the revision differ from those of an earlier conversation with the id.
	c.Revision = max(c.Revision+1, memoryNow().UnixNano())
	return c.remakeRuns()
}

// keep returns a function that undoes changes of a conversation, which may be nil, and of the others around
// it.
func (m *memory) keep(c *memoryConversation) (undo func()) {
	conversations, discards := slices.Clone(m.conversations), slices.Clone(m.discards)
	var kept memoryConversation
	if c != nil {
		kept = *c
		kept.entries, kept.needs, kept.turns = slices.Clone(c.entries), slices.Clone(c.needs), slices.Clone(c.turns)
		kept.runs, kept.prefixes, kept.usage = slices.Clone(c.runs), slices.Clone(c.prefixes), slices.Clone(c.usage)
		kept.receipts, kept.documents, kept.vectors = maps.Clone(c.receipts), maps.Clone(c.documents), maps.Clone(c.vectors)
	}
	return func() {
		m.conversations, m.discards = conversations, discards
		if c != nil {
			*c = kept
		}
	}
}

// checkMemoryRecord refuses records that are of another conversation, or empty.
func checkMemoryRecord(conversationID string, r maintenance.Record) error {
	of := ""
	switch {
	case r.Conversation != nil:
		of = r.Conversation.ID
		if err := checkMemoryConversation(r.Conversation.Conversation); err != nil {
			return err
		}
	case r.Entry != nil:
		of = r.Entry.ConversationID
		if _, err := encodeMemory([]continuo.Entry{*r.Entry}); err != nil {
			return err
		}
	case r.Receipt != nil:
		of = conversationID
	case r.Prefix != nil:
		of = r.Prefix.ConversationID
	case r.Turn != nil:
		of = r.Turn.ConversationID
		if !slices.Contains([]continuo.TurnState{continuo.TurnRunning, continuo.TurnFinished, continuo.TurnFailed, continuo.TurnVoid}, r.Turn.State) {
			return fmt.Errorf("%w: turn %s has the state %q", continuo.ErrInvalid, r.Turn.ID, r.Turn.State)
		}
		if err := checkMemoryUpdate(continuo.TurnUpdate{TurnID: r.Turn.ID, Events: r.Turn.Events}); err != nil {
			return err
		}
	}
	if of != conversationID {
		return fmt.Errorf("%w: a record of conversation %q", continuo.ErrInvalid, of)
	}
	return nil
}

func (m *memory) mayPut(record *maintenance.ConversationRecord) error {
	for _, c := range m.conversations {
		if record.Key != "" && c.Key == record.Key && c.ProjectID == record.ProjectID && c.ID != record.ID {
			return fmt.Errorf("%w: key %q", continuo.ErrExists, record.Key)
		}
	}
	for _, segment := range record.Lineage {
		if m.find(segment.ConversationID) == nil {
			return fmt.Errorf("%w: conversation %s, which %s begins with", continuo.ErrNotFound, segment.ConversationID, record.ID)
		}
	}
	return nil
}

func (m *memory) putConversation(c *memoryConversation, record *maintenance.ConversationRecord) {
	if c == nil {
		c = newMemoryConversation(record.Conversation)
		m.conversations = append(m.conversations, c)
	}
	revision := c.Revision
	c.Conversation, c.deleted = record.Conversation, record.Deleted
	c.Revision = revision
	c.Lineage, c.Metadata = slices.Clone(record.Lineage), slices.Clone(record.Metadata)
	c.forget()
	m.undiscard(continuo.ObjectName(c.ID, ""))
	m.undiscard(continuo.ObjectName(c.ID, maintenance.ArchiveObject(record.ArchivedAt)))
}

// undiscard takes the name in a record off the list of discards.
func (m *memory) undiscard(name string) {
	m.discards = slices.DeleteFunc(m.discards, func(other string) bool { return other == name })
}

func (c *memoryConversation) put(m *memory, r maintenance.Record) error {
	switch {
	case r.Prefix != nil:
		c.putPrefix(*r.Prefix)
	case r.Entry != nil:
		encoded, err := encodeMemory([]continuo.Entry{*r.Entry})
		if err != nil {
			return err
		}
		encoded[0].damaged = r.Damaged
		c.entries = slices.DeleteFunc(c.entries, func(e memoryEntry) bool { return e.seq == r.Entry.Seq })
		c.needs = slices.DeleteFunc(c.needs, func(n memoryNeed) bool { return n.seq == r.Entry.Seq })
		c.append(encoded)
		c.addUsage([]continuo.Entry{*r.Entry})
		slices.SortFunc(c.entries, func(a, b memoryEntry) int { return cmp.Compare(a.seq, b.seq) })
		for _, id := range encoded[0].objects {
			m.undiscard(continuo.ObjectName(c.ID, id))
		}
	case r.Receipt != nil:
		if c.receipts == nil {
			c.receipts = map[string]continuo.Receipt{}
		}
		c.receipts[r.Receipt.Key] = *r.Receipt
	case r.Turn != nil:
		return c.putTurn(r.Turn)
	}
	return nil
}

func (c *memoryConversation) putTurn(record *maintenance.TurnRecord) error {
	t := &memoryTurn{Turn: record.Turn, signals: slices.Clone(record.Signals)}
	t.LeaseUntil, t.LeaseExpired, t.LastEvent = time.Time{}, false, 0
	if n := len(record.Events); n > 0 {
		t.events, t.LastEvent = [][]continuo.TurnEvent{cloneEvents(record.Events)}, record.Events[n-1].ID
	}
	others := slices.DeleteFunc(slices.Clone(c.turns), func(other *memoryTurn) bool { return other.ID == record.ID })
	for _, other := range others {
		if other.Fence == t.Fence || other.State == continuo.TurnRunning && t.State == continuo.TurnRunning {
			return fmt.Errorf("%w: turn %s, beside which turn %s cannot exist", continuo.ErrExists, other.ID, t.ID)
		}
	}
	c.turns = append(others, t)
	return nil
}

func (m *memory) Archive(ctx context.Context, seen continuo.Conversation, at time.Time) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c, err := m.live(seen.ID)
	switch {
	case err != nil:
		return err
	case !c.ArchivedAt.IsZero():
		return continuo.ErrArchived
	case c.LastSeq != seen.LastSeq || !c.UpdatedAt.Equal(seen.UpdatedAt):
		return &continuo.ConflictError{Want: seen.LastSeq + 1, Have: c.LastSeq + 1}
	}
	if running := c.running(); running != nil {
		return &continuo.BusyError{Turn: running.at(memoryNow())}
	}
	c.ArchivedAt, c.turns, c.runs, c.prefixes, c.usage = at, nil, nil, nil, nil
	maps.DeleteFunc(c.receipts, func(_ string, receipt continuo.Receipt) bool { return !receipt.IsMark() })
	c.forget()
	m.release()
	return nil
}

func (m *memory) Restore(ctx context.Context, conversationID string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c, err := m.live(conversationID)
	if err != nil || c.ArchivedAt.IsZero() {
		return err
	}
	if have, want := int64(len(c.entries)), c.LastSeq-c.ForkSeq; have != want {
		return fmt.Errorf("restore conversation %s: %w: %d of its %d entries are there", conversationID, continuo.ErrInvalid, have, want)
	}
	m.discard(continuo.ObjectName(conversationID, maintenance.ArchiveObject(c.ArchivedAt)))
	c.ArchivedAt = time.Time{}
	return c.remakeRuns()
}
