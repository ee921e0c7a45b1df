package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// NewMemory returns a store that keeps everything in memory: the reference that the suite compares engines
// with, and a store for other packages' tests. It is safe for concurrent use.
func NewMemory() continuo.Store {
	return &memory{memoryData: newMemoryData()}
}

func newMemoryData() *memoryData {
	return &memoryData{orders: map[int64]bool{}, nextOrder: map[int64]int64{}}
}

// memory is a handle on data; several may share them, as stores share a database.
type memory struct {
	*memoryData
	closed atomic.Bool
}

type memoryData struct {
	mu            sync.Mutex
	conversations []*memoryConversation
	blobs         map[string][]byte
	discards      []string // the oldest first
	projects      map[string]continuo.Project
	keys          map[string]continuo.APIKey
	leases        map[string]continuo.Lease
	orders        map[int64]bool  // used by documents, removed ones included
	nextOrder     map[int64]int64 // by the time from which one was looked for
}

type memoryConversation struct {
	continuo.Conversation
	deleted  bool // deleted, but a fork begins with it
	entries  []memoryEntry
	needs    []memoryNeed // also of entries that are archived
	receipts map[string]continuo.Receipt
	turns    []*memoryTurn
	runs     []continuo.Run
	memoryIndex
}

// memoryNeed is an object that an entry needs.
type memoryNeed struct {
	seq int64
	id  string
}

// memoryEntry holds an entry as JSON, so that nothing is shared with callers.
type memoryEntry struct {
	seq       int64
	user      bool
	id        string
	outputRef string
	turnID    string
	redacted  bool
	objects   []string
	body      []byte
	damaged   bool // the reference store never damages an entry itself; PutRecords marks one
}

// begin locks the data, unless the store is closed or ctx is done.
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
	if err == nil {
		err = checkMemoryConversation(conversation)
	}
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
		if err := m.checkSegment(segment); err != nil {
			return err
		}
	}
	m.add(conversation).append(encoded)
	return nil
}

// checkMemoryConversation refuses values that some databases cannot store.
func checkMemoryConversation(c continuo.Conversation) error {
	return checkMemoryTexts("conversation "+c.ID, c.ID, c.ProjectID, c.UserID, c.Key, string(c.Kind), c.Title, string(c.ActiveMode), c.ActiveAgent, string(c.Metadata), c.ParentID)
}

func checkMemoryTexts(what string, texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return fmt.Errorf("%s: %w: %q is not UTF-8 without NUL characters", what, continuo.ErrInvalid, text)
		}
	}
	return nil
}

// checkSegment checks that the entries with which a fork is to begin exist.
func (m *memory) checkSegment(segment continuo.Segment) error {
	c := m.find(segment.ConversationID)
	if c == nil || c.LastSeq < segment.Through {
		return fmt.Errorf("%w: entries up to %d of conversation %s", continuo.ErrNotFound, segment.Through, segment.ConversationID)
	}
	if !c.ArchivedAt.IsZero() && segment.Through > max(c.ForkSeq, m.needed()[c.ID]) {
		return fmt.Errorf("conversation %s: %w", c.ID, continuo.ErrArchived)
	}
	return nil
}

func (m *memory) add(conversation continuo.Conversation) *memoryConversation {
	conversation.Lineage = slices.Clone(conversation.Lineage)
	conversation.Metadata = slices.Clone(conversation.Metadata)
	c := &memoryConversation{Conversation: conversation, receipts: map[string]continuo.Receipt{}}
	c.forget()
	m.conversations = append(m.conversations, c)
	return c
}

func (c *memoryConversation) append(entries []memoryEntry) {
	c.entries = append(c.entries, entries...)
	for _, e := range entries {
		for _, id := range e.objects {
			c.needs = append(c.needs, memoryNeed{e.seq, id})
		}
	}
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
		if c.deleted || c.ArchivedAt.IsZero() == query.Archived || c.ProjectID != query.ProjectID || c.Kind != query.Kind ||
			!c.isOne(query.UserID, query.Labels) ||
			query.Before != (continuo.ConversationCursor{}) && newestFirst(c.Conversation, before) <= 0 {
			continue
		}
		found = append(found, c.Conversation)
	}
	slices.SortFunc(found, newestFirst)
	return found[:min(len(found), query.Limit)], nil
}

// isOne reports whether a conversation belongs to a user ("": any user) and has labels.
func (c *memoryConversation) isOne(userID string, labels map[string]string) bool {
	if userID != "" && c.UserID != userID {
		return false
	}
	has := continuo.LabelsOf(c.Metadata)
	for name, value := range labels {
		if got, ok := has[name]; !ok || got != value {
			return false
		}
	}
	return true
}

func newestFirst(a, b continuo.Conversation) int {
	return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.ID, a.ID))
}

func (m *memory) Update(ctx context.Context, id string, change continuo.ConversationChange) (continuo.Conversation, error) {
	texts := []string{string(change.Metadata)}
	for _, text := range []*string{change.Title, change.ActiveAgent, change.Key, change.UserID, change.Claim} {
		if text != nil {
			texts = append(texts, *text)
		}
	}
	if err := checkMemoryTexts("update conversation "+id, texts...); err != nil {
		return continuo.Conversation{}, err
	}
	if err := m.begin(ctx); err != nil {
		return continuo.Conversation{}, err
	}
	defer m.mu.Unlock()
	c, err := m.live(id)
	if err != nil {
		return continuo.Conversation{}, err
	}
	if change.Key != nil {
		if *change.Key != "" && slices.ContainsFunc(m.conversations, func(other *memoryConversation) bool {
			return other != c && other.ProjectID == c.ProjectID && other.Key == *change.Key
		}) {
			return continuo.Conversation{}, continuo.ErrExists
		}
		c.Key = *change.Key
	}
	switch {
	case change.UserID != nil:
		c.UserID = *change.UserID
	case change.Claim != nil && c.UserID == "":
		c.UserID = *change.Claim
	}
	if change.Title != nil {
		c.Title = *change.Title
	}
	if change.ActiveMode != nil {
		c.ActiveMode = *change.ActiveMode
	}
	if change.ActiveAgent != nil {
		c.ActiveAgent = *change.ActiveAgent
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
	archivedAt := c.ArchivedAt
	c.deleted, c.UserID, c.Key, c.Title, c.Metadata, c.Lineage, c.ArchivedAt = true, "", "", "", nil, nil, time.Time{}
	c.receipts, c.turns, c.runs = nil, nil, nil
	c.forget()
	m.release()
	if !archivedAt.IsZero() && m.find(id) != nil { // otherwise all of its objects are discarded
		m.discard(continuo.ObjectName(id, continuo.ArchiveObject(archivedAt)))
	}
	return nil
}

// needed returns the seq up to which forks begin with each conversation.
func (m *memory) needed() map[string]int64 {
	needed := map[string]int64{}
	for _, c := range m.conversations {
		for _, segment := range c.Lineage {
			needed[segment.ConversationID] = max(needed[segment.ConversationID], segment.Through)
		}
	}
	return needed
}

// release removes entries of deleted and archived conversations that no fork needs.
func (m *memory) release() {
	needed := m.needed()
	for _, c := range m.conversations {
		if c.deleted || !c.ArchivedAt.IsZero() {
			c.entries = slices.DeleteFunc(c.entries, func(e memoryEntry) bool { return e.seq > needed[c.ID] })
		}
		if _, kept := needed[c.ID]; c.deleted && kept {
			c.LastSeq = needed[c.ID]
			m.dropNeeds(c, func(n memoryNeed) bool { return n.seq > c.LastSeq })
		}
	}
	m.conversations = slices.DeleteFunc(m.conversations, func(c *memoryConversation) bool {
		_, kept := needed[c.ID]
		if c.deleted && !kept {
			m.discard(continuo.ObjectName(c.ID, ""))
		}
		return c.deleted && !kept
	})
}

func (m *memory) Append(ctx context.Context, batch continuo.Batch) error {
	encoded, err := encodeMemory(batch.Entries)
	for _, receipt := range batch.Receipts {
		err = errors.Join(err, checkMemoryTexts("receipt", receipt.Key, receipt.Fingerprint))
	}
	for _, change := range batch.Runs {
		err = errors.Join(err, checkMemoryTexts("run", change.RunID, change.WorkflowID, string(change.State)))
	}
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
	if !c.ArchivedAt.IsZero() {
		return continuo.ErrArchived
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
	c.append(encoded)
	c.changeRuns(batch.Runs)
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
