package continuo

import (
	"context"
	"fmt"
	"slices"
)

// Snapshot is a conversation and its newest entries as they were at one moment. The readers of one request share it
// instead of each reading the entries again. It does not change: With returns another one.
type Snapshot struct {
	Conversation Conversation
	entries      []Entry // ascending, without a gap, up to Conversation.LastSeq
	head         []Entry // from seq 1, as far as they cost no query
}

// Snapshot reads the newest entries of a conversation, at most limit (at least 1) and with at most one query for
// entries: fewer when they are large, or when the conversation has inherited the others. It fails as [Log.Read].
func (l *Log) Snapshot(ctx context.Context, conversation Conversation, limit int) (*Snapshot, error) {
	reader := pageReader{log: l, conversation: &conversation}
	return reader.snapshot(ctx, limit)
}

// Latest is [Log.Snapshot] of a conversation as it is in the store now: it costs one query less than both. ErrNotFound.
func (l *Log) Latest(ctx context.Context, conversationID string, limit int) (*Snapshot, error) {
	conversation, err := l.Conversation(ctx, conversationID)
	if err != nil {
		return nil, err
	}
	return l.LatestOf(ctx, conversation, limit)
}

// LatestOf is [Log.Latest] for a conversation that was read from the store just now.
func (l *Log) LatestOf(ctx context.Context, conversation Conversation, limit int) (*Snapshot, error) {
	reader := pageReader{log: l, conversation: &conversation, isFresh: true}
	return reader.snapshot(ctx, limit)
}

func (r *pageReader) snapshot(ctx context.Context, limit int) (*Snapshot, error) {
	conversation := r.conversation
	snapshot := &Snapshot{Conversation: *conversation}
	if conversation.LastSeq == 0 {
		return snapshot, nil
	}
	page, taken, _, err := r.page(ctx, conversation.LastSeq, 1, true, limit)
	if err == nil && len(r.view.tail) > 0 && len(page) < limit {
		// Those before the new ones, which continue them in the cache now.
		memoryOf(ctx).give(taken)
		page = r.continued(page, limit)
		_, err = memoryOf(ctx).takeEntries(page)
	}
	if err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", conversation.ID, err)
	}
	snapshot.entries = slices.Clip(page)
	if r.of == conversation.ID {
		snapshot.head = r.view.head
	}
	return snapshot, nil
}

// continued returns a page with the entries before it, if the cache has them in the revision that the reader confirmed.
func (r *pageReader) continued(page []Entry, limit int) []Entry {
	last := page[len(page)-1].Seq
	view, found := r.log.cache.view(r.of)
	if !found || view.revision != r.revision {
		return page
	}
	if whole := view.page(max(1, last-int64(limit)+1), last, true); len(whole) > len(page) {
		return whole
	}
	return page
}

// Entries returns the entries that were read, in ascending order. The caller must not change them.
func (s *Snapshot) Entries() []Entry {
	if s == nil {
		return nil
	}
	return s.entries
}

// With returns the snapshot with entries that were appended since, in the form in which a store returns them. It is nil
// when other entries precede them.
func (s *Snapshot) With(stored []Entry) *Snapshot {
	if s == nil || len(stored) == 0 {
		return s
	}
	if stored[0].Seq != s.Conversation.LastSeq+1 {
		return nil
	}
	with := &Snapshot{Conversation: s.Conversation, entries: slices.Clip(s.entries), head: s.head}
	read, err := asRead(stored)
	if err != nil {
		return nil
	}
	with.entries = append(with.entries, read...)
	with.Conversation.LastSeq = stored[len(stored)-1].Seq
	return with
}

// asRead returns entries as a store returns them that has stored them.
func asRead(stored []Entry) ([]Entry, error) {
	read := make([]Entry, len(stored))
	for i := range stored {
		data, err := stored[i].MarshalJSON()
		if err == nil {
			err = read[i].Decode(string(data))
		}
		if err != nil {
			return nil, err
		}
	}
	return read, nil
}

// page returns the entries from next towards end, in ascending order; nil when the snapshot does not have next.
func (s *Snapshot) page(conversationID string, next, end int64, backward bool) []Entry {
	if s == nil || s.Conversation.ID != conversationID {
		return nil
	}
	first, last := next, end
	if backward {
		first, last = end, next
	}
	if page := within(s.entries, first, last, backward); page != nil {
		return page
	}
	return within(s.head, first, last, backward)
}
