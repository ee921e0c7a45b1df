package turn

import (
	"context"
	"iter"

	continuo "github.com/continuo-log/continuo"
)

// Source shows a conversation of a log to the window room.
type Source struct {
	Context      context.Context
	Log          *continuo.Log
	Conversation continuo.Conversation
}

// Backward yields the entries from seq down to 1.
func (s Source) Backward(seq int64) iter.Seq2[continuo.Entry, error] {
	if seq < 1 {
		return func(func(continuo.Entry, error) bool) {}
	}
	return s.Log.Read(s.Context, s.Conversation, continuo.Range{To: seq, Backward: true, Keeps: true})
}

// Forward yields the entries from seq up.
func (s Source) Forward(seq int64) iter.Seq2[continuo.Entry, error] {
	return s.Log.Read(s.Context, s.Conversation, continuo.Range{From: seq, Keeps: true})
}

// LatestUser finds the newest user entry at or before seq.
func (s Source) LatestUser(seq int64) (continuo.Entry, error) {
	return s.Log.LatestUser(s.Context, s.Conversation, seq)
}
