package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/maintenance"
)

// NewMemory returns a store that keeps everything in memory: the reference that the suite compares engines
// with, and a store for other packages' tests. It is safe for concurrent use.
func NewMemory() maintenance.Store {
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
	projects      map[string]auth.Project
	keys          map[string]auth.Key
	sessions      map[string]auth.Session
	spending      []continuo.Spending
	finished      []continuo.FinishedTurn
	lastFinished  int64                   // the last position
	pruned        []continuo.FinishedTurn // that were removed
	positions     map[string]int64
	audit         []audit.Event
	audited       int64 // the last position in audit
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
	prefixes []continuo.Prefix
	usage    []continuo.UsageCount
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
	if m.isTaken(conversation) {
		return continuo.ErrExists
	}
	for _, segment := range conversation.Lineage {
		if err := m.checkSegment(segment); err != nil {
			return err
		}
	}
	c := newMemoryConversation(conversation)
	m.conversations = append(m.conversations, c)
	c.append(encoded)
	c.addUsage(entries)
	return nil
}

// isTaken reports whether the id or the key of a new conversation is another one's.
func (m *memory) isTaken(conversation continuo.Conversation) bool {
	return slices.ContainsFunc(m.conversations, func(c *memoryConversation) bool {
		return c.ID == conversation.ID || conversation.Key != "" && c.Key == conversation.Key && c.ProjectID == conversation.ProjectID
	})
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

func newMemoryConversation(conversation continuo.Conversation) *memoryConversation {
	conversation.Lineage = slices.Clone(conversation.Lineage)
	conversation.Metadata = slices.Clone(conversation.Metadata)
	c := &memoryConversation{Conversation: conversation, receipts: map[string]continuo.Receipt{}}
	c.forget()
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

func (m *memory) ConversationsByID(ctx context.Context, ids []string) (found []continuo.Conversation, err error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	for _, c := range m.conversations {
		if !c.deleted && slices.Contains(ids, c.ID) {
			found = append(found, c.Conversation)
		}
	}
	return found, nil
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
	var found []continuo.ConversationCursor
	for _, c := range m.conversations {
		at := continuo.ConversationCursor{UpdatedAt: c.UpdatedAt, ID: c.ID}
		if query.Sort != continuo.SortUpdated {
			at = continuo.ConversationCursor{ID: c.ID, Value: query.Sort.SortValue(c.Conversation, c.usage)}
		}
		if c.isListed(query) && (query.Before == (continuo.ConversationCursor{}) || inOrder(query.Before, at) < 0) {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, inOrder)
	var page []continuo.Conversation
	for _, at := range found[:min(len(found), query.Limit)] {
		page = append(page, m.find(at.ID).Conversation)
	}
	return page, nil
}

// isListed reports whether a query selects the conversation, on whatever page.
func (c *memoryConversation) isListed(query continuo.ConversationQuery) bool {
	return !c.deleted && c.ArchivedAt.IsZero() != query.Archived && c.ProjectID == query.ProjectID && c.Kind == query.Kind &&
		c.isOne(query.UserID, query.Labels) && c.isActive(query)
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

// inOrder compares positions in a list: the highest value first, or the newest change.
func inOrder(a, b continuo.ConversationCursor) int {
	return cmp.Or(cmp.Compare(b.Value, a.Value), b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.ID, a.ID))
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
	if change.Title != nil && *change.Title != c.Title {
		c.Title, c.title = *change.Title, nil
		delete(c.documents, 0)
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
	c.receipts, c.turns, c.runs, c.prefixes, c.usage = nil, nil, nil, nil, nil
	c.forget()
	m.release()
	if !archivedAt.IsZero() && m.find(id) != nil { // otherwise all of its objects are discarded
		m.discard(continuo.ObjectName(id, maintenance.ArchiveObject(archivedAt)))
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

func (m *memory) PutBlob(ctx context.Context, hash string, data []byte) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.putBlob(hash, data)
	return nil
}

func (m *memory) putBlob(hash string, data []byte) {
	if m.blobs == nil {
		m.blobs = map[string][]byte{}
	}
	if _, ok := m.blobs[hash]; !ok {
		m.blobs[hash] = slices.Clone(data)
	}
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
