package turn

import (
	"context"
	"fmt"
	"iter"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Source gives a view access to a conversation. Log and Conversation are required. The conversation value may be older
// than the log: newer entries are found too.
type Source struct {
	// Context is used for reads. Default: [context.Background].
	Context      context.Context
	Log          *continuo.Log
	Conversation continuo.Conversation
	// Snapshot has entries that were read already: they are not read again. Default none.
	Snapshot *continuo.Snapshot
	// Expect is how many entries a reader of Backward will probably take; see [continuo.Range]. Default: a few.
	Expect int
}

// Expecting returns the source for a reader that will probably take so many entries of Backward.
func (s Source) Expecting(entries int) window.Source {
	s.Expect = entries
	return s
}

// Backward yields the entries at or before seq, the newest first.
func (s Source) Backward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		if seq < 1 {
			return
		}
		now, err := s.through(seq)
		if err != nil {
			yield(nil, err)
			return
		}
		s.Log.ReadShared(s.context(), now, continuo.Range{To: seq, Backward: true, Expect: s.Expect, Keeps: true, Snapshot: s.Snapshot})(yield)
	}
}

// Forward yields the entries from seq up.
func (s Source) Forward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		known := s.Conversation.LastSeq
		if err := s.check(); err != nil {
			yield(nil, err)
			return
		}
		for entry, err := range s.Log.ReadShared(s.context(), s.Conversation, continuo.Range{From: seq, Keeps: true, Snapshot: s.Snapshot}) {
			if !yield(entry, err) || err != nil {
				return
			}
		}
		now, err := s.through(known + 1)
		if err != nil {
			yield(nil, err)
			return
		}
		s.Log.ReadShared(s.context(), now, continuo.Range{From: max(seq, known+1), Keeps: true})(yield)
	}
}

// LatestUser finds the newest user entry at or before seq.
func (s Source) LatestUser(seq int64) (*continuo.Entry, error) {
	now, err := s.through(seq)
	if err != nil {
		return nil, err
	}
	known := s.Snapshot.Entries()
	for i := range slices.Backward(known) {
		entry := &known[i]
		if entry.Seq > seq {
			continue
		}
		if entry.Role == continuo.User && !entry.Hidden {
			return entry, nil
		}
		seq = entry.Seq - 1
	}
	entry, err := s.Log.LatestUser(s.context(), now, seq)
	if err != nil {
		return nil, err
	}
	return &entry, nil
}

// through returns the conversation, and reads it again if its LastSeq is below seq.
func (s Source) through(seq int64) (continuo.Conversation, error) {
	if err := s.check(); err != nil || seq <= s.Conversation.LastSeq {
		return s.Conversation, err
	}
	return s.Log.Conversation(s.context(), s.Conversation.ID)
}

func (s Source) check() error {
	if s.Log == nil || s.Conversation.ID == "" {
		return fmt.Errorf("%w: a turn.Source needs a log and a conversation", continuo.ErrInvalid)
	}
	return nil
}

func (s Source) context() context.Context {
	if s.Context == nil {
		return context.Background()
	}
	return s.Context
}
