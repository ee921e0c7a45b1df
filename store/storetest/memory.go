package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	continuo "github.com/continuo-log/continuo"
)

// NewMemory makes a store that keeps everything in memory: the reference that the suite compares
// engines with, and a store for other packages' tests. It is safe for concurrent use.
func NewMemory() continuo.Store { return &memory{memoryData: &memoryData{}} }

// memory is a handle on data; several may share them, as stores share a database.
type memory struct {
	*memoryData
	closed atomic.Bool
}

type memoryData struct {
	mu            sync.Mutex
	conversations []*memoryConversation
	blobs         map[string][]byte
}

type memoryConversation struct {
	continuo.Conversation
	deleted  bool // but a fork begins with it
	entries  []memoryEntry
	receipts map[string]continuo.Receipt
	turns    []*memoryTurn
}

// memoryEntry holds an entry as JSON, so that nothing is shared with callers.
type memoryEntry struct {
	seq       int64
	user      bool
	outputRef string
	objects   []string
	body      []byte
}

// begin locks the data, unless there is a reason not to work.
func (m *memory) begin(ctx context.Context) error {
	if m.closed.Load() {
		return continuo.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	return nil
}

// Close makes all later calls fail.
func (m *memory) Close() error {
	m.closed.Store(true)
	return nil
}

func (m *memory) Create(ctx context.Context, conversation continuo.Conversation, entries []continuo.Entry) error {
	encoded, err := encodeMemory(entries)
	if err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, c := range m.conversations {
		if c.ID == conversation.ID || conversation.Key != "" && c.Key == conversation.Key && c.ProjectID == conversation.ProjectID {
			return continuo.ErrExists
		}
	}
	for _, segment := range conversation.Lineage {
		if m.find(segment.ConversationID) == nil {
			return fmt.Errorf("%w: conversation %s", continuo.ErrNotFound, segment.ConversationID)
		}
	}
	conversation.Lineage = slices.Clone(conversation.Lineage)
	conversation.Metadata = slices.Clone(conversation.Metadata)
	m.conversations = append(m.conversations, &memoryConversation{Conversation: conversation, entries: encoded, receipts: map[string]continuo.Receipt{}})
	return nil
}

func (m *memory) find(id string) *memoryConversation {
	for _, c := range m.conversations {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// live finds a conversation that is not deleted.
func (m *memory) live(id string) (*memoryConversation, error) {
	if c := m.find(id); c != nil && !c.deleted {
		return c, nil
	}
	return nil, continuo.ErrNotFound
}

func (m *memory) Conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	if err := m.begin(ctx); err != nil {
		return continuo.Conversation{}, err
	}
	defer m.mu.Unlock()
	c, err := m.live(id)
	if err != nil {
		return continuo.Conversation{}, err
	}
	return c.Conversation, nil
}

func (m *memory) ConversationByKey(ctx context.Context, projectID, key string) (continuo.Conversation, error) {
	if err := m.begin(ctx); err != nil {
		return continuo.Conversation{}, err
	}
	defer m.mu.Unlock()
	for _, c := range m.conversations {
		if key != "" && c.ProjectID == projectID && c.Key == key {
			return c.Conversation, nil
		}
	}
	return continuo.Conversation{}, continuo.ErrNotFound
}

func (m *memory) Conversations(ctx context.Context, query continuo.ConversationQuery) ([]continuo.Conversation, error) {
	if query.Limit < 1 {
		return nil, fmt.Errorf("list conversations: %w: limit %d is less than 1", continuo.ErrInvalid, query.Limit)
	}
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var found []continuo.Conversation
	before := continuo.Conversation{UpdatedAt: query.Before.UpdatedAt, ID: query.Before.ID}
	for _, c := range m.conversations {
		if c.deleted || c.ProjectID != query.ProjectID || query.Before != (continuo.ConversationCursor{}) && newestFirst(c.Conversation, before) <= 0 {
			continue
		}
		found = append(found, c.Conversation)
	}
	slices.SortFunc(found, newestFirst)
	return found[:min(len(found), query.Limit)], nil
}

func newestFirst(a, b continuo.Conversation) int {
	return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.ID, a.ID))
}

func (m *memory) Update(ctx context.Context, id string, change continuo.ConversationChange) (continuo.Conversation, error) {
	if err := m.begin(ctx); err != nil {
		return continuo.Conversation{}, err
	}
	defer m.mu.Unlock()
	c, err := m.live(id)
	if err != nil {
		return continuo.Conversation{}, err
	}
	if change.Title != nil {
		c.Title = *change.Title
	}
	if change.ActiveMode != nil {
		c.ActiveMode = *change.ActiveMode
	}
	if change.Metadata != nil {
		c.Metadata = slices.Clone(change.Metadata)
	}
	c.UpdatedAt = change.UpdatedAt
	return c.Conversation, nil
}

func (m *memory) Delete(ctx context.Context, id string) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c, err := m.live(id)
	if err != nil {
		return err
	}
	c.deleted, c.Key, c.receipts, c.turns = true, "", nil, nil
	needed := map[string]int64{} // up to which seq
	for _, other := range m.conversations {
		for _, segment := range other.Lineage {
			if !other.deleted {
				needed[segment.ConversationID] = max(needed[segment.ConversationID], segment.Through)
			}
		}
	}
	for _, c := range m.conversations {
		if c.deleted {
			c.entries = slices.DeleteFunc(c.entries, func(e memoryEntry) bool { return e.seq > needed[c.ID] })
		}
	}
	m.conversations = slices.DeleteFunc(m.conversations, func(c *memoryConversation) bool {
		_, kept := needed[c.ID]
		return c.deleted && !kept
	})
	return nil
}

func (m *memory) Append(ctx context.Context, batch continuo.Batch) error {
	encoded, err := encodeMemory(batch.Entries)
	if err != nil {
		return err
	}
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	c, err := m.live(batch.ConversationID)
	if err != nil {
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
	c.receipts, c.turns = receipts, turns
	for _, update := range batch.Turns {
		c.switchMode(update)
	}
	for i := range encoded {
		c.LastSeq, c.UpdatedAt = encoded[i].seq, batch.Entries[i].CreatedAt
	}
	c.entries = append(c.entries, encoded...)
	return nil
}

func encodeMemory(entries []continuo.Entry) ([]memoryEntry, error) {
	var encoded []memoryEntry
	for _, entry := range entries {
		body, err := entry.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", continuo.ErrInvalid, entry.Seq, err)
		}
		encoded = append(encoded, memoryEntry{
			seq: entry.Seq, user: entry.Role == continuo.User && !entry.Hidden, outputRef: entry.OutputRef, objects: entry.Objects(), body: body,
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
	found = found[:min(len(found), query.Limit)]
	entries := make([]continuo.Entry, len(found))
	for i, e := range found {
		if err := json.Unmarshal(e.body, &entries[i]); err != nil {
			return nil, err
		}
	}
	return entries, nil
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

func (m *memory) PutBlob(ctx context.Context, hash string, data []byte) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if m.blobs == nil {
		m.blobs = map[string][]byte{}
	}
	if _, ok := m.blobs[hash]; !ok {
		m.blobs[hash] = slices.Clone(data)
	}
	return nil
}

func (m *memory) Blob(ctx context.Context, hash string) ([]byte, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	data, ok := m.blobs[hash]
	if !ok {
		return nil, continuo.ErrNotFound
	}
	return slices.Clone(data), nil
}
