package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

func (m *memory) Append(ctx context.Context, batch continuo.Batch) error {
	encoded, err := encodeMemory(batch.Entries)
	for _, receipt := range batch.Receipts {
		err = errors.Join(err, checkMemoryTexts("receipt", receipt.Key, receipt.Fingerprint))
	}
	err = errors.Join(err, checkMemoryPrefixes(batch))
	for _, change := range batch.Runs {
		err = errors.Join(err, checkMemoryTexts("run", change.RunID, change.WorkflowID, string(change.State)))
	}
	if err != nil {
		return err
	}
	if err := errors.Join(checkMemoryBegin(batch), checkMemoryCreate(batch)); err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c, err := m.appendTo(batch)
	if err != nil {
		return err
	}
	now := memoryNow()
	if err := c.mayBegin(batch.Begin, now); err != nil {
		return err
	}
	if c.LastSeq != batch.After {
		return &continuo.ConflictError{Want: batch.After + 1, Have: c.LastSeq + 1}
	}
	receipts := maps.Clone(c.receipts)
	for _, receipt := range batch.Receipts {
		if _, taken := receipts[receipt.Key]; taken {
			return fmt.Errorf("%w: receipt %q", continuo.ErrExists, receipt.Key)
		}
		receipts[receipt.Key] = receipt
	}
	turns, err := c.updatedTurns(batch.Turns)
	if err != nil {
		return err
	}
	if batch.Create != nil {
		m.conversations = append(m.conversations, c)
	}
	for _, blob := range batch.Blobs {
		m.putBlob(blob.Hash, blob.Data)
	}
	c.receipts, c.turns = receipts, turns
	for _, p := range batch.Prefixes {
		c.putPrefix(p)
	}
	for _, update := range batch.Turns {
		c.switchMode(update)
		m.record(c, update)
	}
	for i := range encoded {
		c.LastSeq, c.UpdatedAt = encoded[i].seq, batch.Entries[i].CreatedAt
	}
	c.append(encoded)
	c.addUsage(batch.Entries)
	c.changeRuns(batch.Runs)
	c.beginTurn(batch.Begin, now)
	return nil
}

// appendTo finds the conversation that a batch appends to. One that the batch creates is not among the others yet.
func (m *memory) appendTo(batch continuo.Batch) (*memoryConversation, error) {
	if batch.Create != nil {
		if m.isTaken(*batch.Create) {
			return nil, continuo.ErrExists
		}
		return newMemoryConversation(*batch.Create), nil
	}
	c, err := m.live(batch.ConversationID)
	if err == nil && !c.ArchivedAt.IsZero() {
		err = continuo.ErrArchived
	}
	return c, err
}

// checkMemoryCreate checks the conversation that a batch creates.
func checkMemoryCreate(batch continuo.Batch) error {
	created := batch.Create
	switch {
	case created == nil:
		return nil
	case created.ID != batch.ConversationID || batch.Begin == nil || batch.After != 0 || created.LastSeq != 0 || len(created.Lineage) > 0:
		return fmt.Errorf("create conversation %s: %w: its batch cannot create it", created.ID, continuo.ErrInvalid)
	}
	return checkMemoryConversation(*created)
}

func encodeMemory(entries []continuo.Entry) ([]memoryEntry, error) {
	var encoded []memoryEntry
	for _, entry := range entries {
		body, err := entry.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", continuo.ErrInvalid, entry.Seq, err)
		}
		encoded = append(encoded, memoryEntry{
			seq: entry.Seq, user: entry.Role == continuo.User && !entry.Hidden, id: entry.ID, outputRef: entry.OutputRef, turnID: entry.TurnID,
			redacted: entry.Redacted != nil, objects: entry.Objects(), body: body,
		})
	}
	return encoded, nil
}

func (m *memory) Entries(ctx context.Context, conversationID string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("read entries: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	c := m.find(conversationID)
	if c == nil {
		return nil, nil
	}
	var found []memoryEntry
	for _, e := range c.entries {
		if e.seq >= query.From && e.seq <= query.To && (e.user || !query.UsersOnly) && (query.OutputRef == "" || e.outputRef == query.OutputRef) {
			found = append(found, e)
		}
	}
	if query.Backward {
		slices.Reverse(found)
	}
	page := firstBytes(found[:min(len(found), query.Limit)], query.MaxBytes)
	cut := len(page) < min(len(found), query.Limit)
	if !c.ArchivedAt.IsZero() && min(query.To, c.LastSeq) > max(c.ForkSeq, m.needed()[c.ID]) && query.From <= min(query.To, c.LastSeq) &&
		(query.Backward || len(page) < query.Limit && !cut) {
		return nil, fmt.Errorf("entries of conversation %s: %w", conversationID, continuo.ErrArchived)
	}
	if cut && len(page) == 0 {
		return nil, &continuo.LargeEntryError{Seq: found[0].seq, Bytes: int64(len(found[0].body))}
	}
	entries := make([]continuo.Entry, len(page))
	for i, e := range page {
		if err := json.Unmarshal(e.body, &entries[i]); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (m *memory) EntrySizes(ctx context.Context, conversationID string, from, to int64) (sum continuo.Size, err error) {
	if err := m.begin(ctx); err != nil {
		return sum, err
	}
	defer m.mu.Unlock()
	c := m.find(conversationID)
	if c == nil {
		return sum, nil
	}
	for _, e := range c.entries {
		var counted continuo.Entry
		if e.seq < from || e.seq > to {
			continue
		}
		if err := json.Unmarshal(e.body, &counted); err != nil {
			return sum, err
		}
		sum = sum.Add(continuo.Size{Messages: 1, Chars: counted.Chars, Tokens: counted.Tokens})
	}
	return sum, nil
}

func (m *memory) EntriesAt(ctx context.Context, places []continuo.EntryPlace, maxBytes int64) ([]continuo.Entry, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var found []continuo.Entry
	for _, place := range places {
		var body []byte
		if c := m.find(place.ConversationID); c != nil {
			if i := slices.IndexFunc(c.entries, func(e memoryEntry) bool { return e.seq == place.Seq }); i >= 0 {
				body = c.entries[i].body
			}
		}
		if maxBytes -= int64(len(body)); maxBytes < 0 {
			break
		}
		entry := continuo.Entry{}
		if body != nil {
			if err := json.Unmarshal(body, &entry); err != nil {
				return nil, err
			}
		}
		found = append(found, entry)
	}
	return found, nil
}

// firstBytes returns the longest prefix of entries within a number of bytes; 0 for all.
func firstBytes(entries []memoryEntry, most int64) []memoryEntry {
	if most == 0 {
		return entries
	}
	for i, e := range entries {
		if most -= int64(len(e.body)); most < 0 {
			return entries[:i]
		}
	}
	return entries
}

func (m *memory) Revision(ctx context.Context, conversationID string) (int64, error) {
	if err := m.begin(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	c, err := m.live(conversationID)
	if err == nil && !c.ArchivedAt.IsZero() {
		err = continuo.ErrArchived
	}
	if err != nil {
		return 0, err
	}
	return c.Revision, nil
}

func (m *memory) Receipt(ctx context.Context, conversationID, key string) (continuo.Receipt, error) {
	if err := m.begin(ctx); err != nil {
		return continuo.Receipt{}, err
	}
	defer m.mu.Unlock()
	if c := m.find(conversationID); c != nil {
		if receipt, ok := c.receipts[key]; ok {
			return receipt, nil
		}
	}
	return continuo.Receipt{}, continuo.ErrNotFound
}

func (m *memory) AdvanceReceipt(ctx context.Context, conversationID string, receipt continuo.Receipt) (continuo.Receipt, error) {
	if err := checkMemoryTexts("receipt", receipt.Key, receipt.Fingerprint); err != nil {
		return continuo.Receipt{}, err
	}
	if err := m.begin(ctx); err != nil {
		return continuo.Receipt{}, err
	}
	defer m.mu.Unlock()
	c, err := m.live(conversationID)
	if err != nil {
		return continuo.Receipt{}, err
	}
	if !c.ArchivedAt.IsZero() {
		return continuo.Receipt{}, continuo.ErrArchived
	}
	kept, ok := c.receipts[receipt.Key]
	isAhead := cmp.Or(cmp.Compare(receipt.Last, kept.Last), cmp.Compare(receipt.First, kept.First)) > 0
	if !ok || kept.Fingerprint == receipt.Fingerprint && isAhead {
		kept = receipt
		c.receipts[receipt.Key] = kept
	}
	return kept, nil
}
