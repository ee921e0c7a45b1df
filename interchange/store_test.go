package interchange

import (
	"context"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// memory is a store that keeps conversations for the length of a test. What is stored is read back from
// its JSON form, as from a database.
type memory struct {
	continuo.Store // what the tests do not use
	conversations  map[string]continuo.Conversation
	entries        map[string][][]byte
	objects        continuo.ObjectStore
}

// newLog makes objects of outputs and attachments that have more than a byte, so that all tests are about
// them too.
func newLog() *continuo.Log {
	store := &memory{conversations: map[string]continuo.Conversation{}, entries: map[string][][]byte{}, objects: storetest.NewObjects()}
	return continuo.NewLog(store, continuo.LogOptions{MaxInlineOutput: 1, MaxInlinePart: 1, Objects: store.objects})
}

func (m *memory) Create(_ context.Context, c continuo.Conversation, entries []continuo.Entry) error {
	for _, other := range m.conversations {
		if c.Key != "" && other.Key == c.Key {
			return continuo.ErrExists
		}
	}
	m.conversations[c.ID] = c
	return m.store(c.ID, entries)
}

func (m *memory) store(id string, entries []continuo.Entry) error {
	for _, entry := range entries {
		data, err := entry.MarshalJSON()
		if err != nil {
			return err
		}
		m.entries[id] = append(m.entries[id], data)
	}
	return nil
}

func (m *memory) Append(_ context.Context, batch continuo.Batch) error {
	c := m.conversations[batch.ConversationID]
	c.LastSeq += int64(len(batch.Entries))
	m.conversations[c.ID] = c
	return m.store(c.ID, batch.Entries)
}

func (m *memory) Conversation(_ context.Context, id string) (continuo.Conversation, error) {
	c, ok := m.conversations[id]
	if !ok {
		return c, continuo.ErrNotFound
	}
	return c, nil
}

func (m *memory) Revision(context.Context, string) (int64, error) { return 0, nil }

func (m *memory) Entries(_ context.Context, id string, q continuo.EntryQuery) ([]continuo.Entry, error) {
	var found []continuo.Entry
	for seq := q.From; seq <= q.To && int(seq) <= len(m.entries[id]); seq++ {
		var entry continuo.Entry
		if err := entry.UnmarshalJSON(m.entries[id][seq-1]); err != nil {
			return nil, err
		}
		if q.OutputRef == "" || entry.OutputRef == q.OutputRef {
			found = append(found, entry)
		}
	}
	if q.Backward {
		slices.Reverse(found)
	}
	return found[:min(len(found), q.Limit)], nil
}

// failer is what the helpers need of a test; rapid's tests have it too.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Error(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// imported puts a document into a log of its own.
func imported(t failer, document Document) (*continuo.Log, continuo.Conversation) {
	t.Helper()
	log := newLog()
	conversation, err := log.Import(context.Background(), document.Conversation, document.Entries)
	if err != nil {
		t.Fatalf("%s: the log refuses what was read: %v", document.Source, err)
	}
	return log, conversation
}
