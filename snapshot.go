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
}

// Snapshot reads the newest entries of a conversation, at most limit (at least 1) and with at most one query: fewer
// when they are large, or when the conversation has inherited the others. It fails as [Log.Read].
func (l *Log) Snapshot(ctx context.Context, conversation Conversation, limit int) (*Snapshot, error) {
	snapshot := &Snapshot{Conversation: conversation}
	if conversation.LastSeq == 0 {
		return snapshot, nil
	}
	page, _, err := l.page(ctx, conversation, conversation.LastSeq, 1, true, limit)
	if err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", conversation.ID, err)
	}
	slices.Reverse(page)
	snapshot.entries = page
	return snapshot, nil
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
	with := &Snapshot{Conversation: s.Conversation, entries: slices.Clip(s.entries)}
	for i := range stored {
		var read Entry
		data, err := stored[i].MarshalJSON()
		if err == nil {
			err = read.UnmarshalJSON(data)
		}
		if err != nil {
			return nil
		}
		with.entries = append(with.entries, read)
	}
	with.Conversation.LastSeq = stored[len(stored)-1].Seq
	return with
}

// page returns the entries from next towards end, in the order of reading; nil when the snapshot does not have next.
func (s *Snapshot) page(conversationID string, next, end int64, backward bool) []Entry {
	if s == nil || len(s.entries) == 0 || s.Conversation.ID != conversationID {
		return nil
	}
	first, last := s.entries[0].Seq, s.entries[len(s.entries)-1].Seq
	if next < first || next > last {
		return nil
	}
	if !backward {
		return s.entries[next-first : min(end, last)-first+1]
	}
	page := slices.Clone(s.entries[max(end, first)-first : next-first+1])
	slices.Reverse(page)
	return page
}
