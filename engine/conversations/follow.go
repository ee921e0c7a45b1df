package conversations

import (
	"bytes"
	"context"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Change is one change of a conversation that a follower gets: one field is set, or none in the change that says that the
// follower has begun.
type Change struct {
	// Entry was appended.
	Entry *continuo.Entry
	// Turn is the newest turn, which began or ended.
	Turn *continuo.Turn
	// Conversation has other properties than before, such as a title.
	Conversation *continuo.Conversation
	// Revised says that stored entries changed, by a redaction, so that a reader has to read them again.
	Revised bool
}

// followPoll is how often a follower looks for changes that nothing reports: those of turns, and, where the store reports
// none, those by other processes.
const followPoll = 500 * time.Millisecond

// Follow yields the entries of a conversation after a seq, and then what changes, whichever process changes it: entries as
// they are appended, the beginning and the end of turns, other properties. It begins with the newest turn, if that runs. Then
// an empty change says that the state of the conversation is known: what changes from here on is yielded. It
// ends when ctx is done, and fails with ErrNotFound when the conversation is deleted or leaves the scope, with ErrArchived
// when it is archived.
func (cv *Conversations) Follow(ctx context.Context, scope continuo.Scope, id string, after int64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		f := follower{cv: cv, scope: scope, id: id, after: after, yield: yield}
		listener := cv.log.Listen(id)
		defer listener.Close()
		for begun := false; ; begun = true {
			changed := listener.Changed()
			more, err := f.look(ctx)
			if more && err == nil && !begun {
				more = yield(Change{}, nil)
			}
			if err != nil && ctx.Err() == nil {
				yield(Change{}, err)
			}
			if err != nil || !more || !listener.Wait(ctx, changed, followPoll) {
				return
			}
		}
	}
}

// follower is a reader of a conversation's changes.
type follower struct {
	cv    *Conversations
	scope continuo.Scope
	id    string
	yield func(Change, error) bool

	after int64
	known *continuo.Conversation
	turn  continuo.Turn
}

// look yields what has changed since the last look; more is false where the reader has enough.
func (f *follower) look(ctx context.Context) (more bool, err error) {
	// The turn is read first: the entries with which it began or ended are in the log then, and are yielded before it.
	newest, err := f.cv.log.Turns().Turns(ctx, continuo.TurnQuery{ConversationID: f.id, Limit: 1})
	if err != nil {
		return false, err
	}
	conversation, err := f.cv.log.Conversation(ctx, f.id)
	switch {
	case err != nil:
		return false, err
	case !f.scope.Has(conversation):
		return false, continuo.ErrNotFound
	case !conversation.ArchivedAt.IsZero():
		return false, continuo.ErrArchived
	}
	if f.after > conversation.LastSeq {
		f.after = conversation.LastSeq
	}
	for entry, err := range f.cv.log.Read(ctx, conversation, continuo.Range{From: f.after + 1}) {
		if err != nil {
			return false, err
		}
		f.after = entry.Seq
		if !f.yield(Change{Entry: &entry}, nil) {
			return false, nil
		}
	}
	return f.compareTurn(newest) && f.compare(conversation), nil
}

// compareTurn yields the newest turn, if there is one, when it is another one or in another state. An ended one is no news
// to a reader that begins.
func (f *follower) compareTurn(newest []continuo.Turn) (more bool) {
	if len(newest) == 0 {
		return true
	}
	before := f.turn
	f.turn = newest[0]
	if f.turn.ID == before.ID && f.turn.State == before.State || f.known == nil && f.turn.State != continuo.TurnRunning {
		return true
	}
	return f.yield(Change{Turn: &f.turn}, nil)
}

// compare yields the conversation if a property has changed, and a revision.
func (f *follower) compare(now continuo.Conversation) (more bool) {
	before := f.known
	f.known = &now
	if before == nil {
		return true
	}
	if now.Revision != before.Revision && !f.yield(Change{Revised: true}, nil) {
		return false
	}
	if now.Title == before.Title && now.Key == before.Key && now.UserID == before.UserID && now.ActiveMode == before.ActiveMode &&
		now.ActiveAgent == before.ActiveAgent && bytes.Equal(now.Metadata, before.Metadata) {
		return true
	}
	return f.yield(Change{Conversation: &now}, nil)
}
