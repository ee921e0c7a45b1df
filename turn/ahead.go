package turn

import (
	"iter"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Ahead is a conversation with additional entries after its end that are not appended yet.
type Ahead struct {
	Source
	More []continuo.Entry
}

// Expecting is part of [window.Paged]: that of the embedded source would lack the additional entries.
func (a Ahead) Expecting(entries int) window.Source {
	a.Expect = entries
	return a
}

// Backward is part of [window.Source].
func (a Ahead) Backward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for i := range slices.Backward(a.More) {
			if a.More[i].Seq <= seq && !yield(&a.More[i], nil) {
				return
			}
		}
		for entry, err := range a.Source.Backward(min(seq, a.Conversation.LastSeq)) {
			if !yield(entry, err) {
				return
			}
		}
	}
}

// Forward is part of [window.Source].
func (a Ahead) Forward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		last := a.Conversation.LastSeq
		if seq <= last {
			for entry, err := range a.Source.Forward(seq) {
				if !yield(entry, err) {
					return
				}
				if err != nil || entry.Seq == last {
					break // entries that others have appended since do not precede the additional ones
				}
			}
		}
		for i := range a.More {
			if a.More[i].Seq >= seq && !yield(&a.More[i], nil) {
				return
			}
		}
	}
}

// LatestUser is part of [window.Source].
func (a Ahead) LatestUser(seq int64) (*continuo.Entry, error) {
	for i := range slices.Backward(a.More) {
		if entry := &a.More[i]; entry.Seq <= seq && entry.Role == continuo.User {
			return entry, nil
		}
	}
	return a.Source.LatestUser(min(seq, a.Conversation.LastSeq))
}
