package conversations_test

import (
	"context"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// atTurns is a store that calls before ahead of each list of turns.
type atTurns struct {
	maintenance.Store
	before func()
}

func (s *atTurns) Turns(ctx context.Context, query continuo.TurnQuery) ([]continuo.Turn, error) {
	s.before()
	return s.Store.Turns(ctx, query)
}

// changes follows a conversation from its beginning and calls next with each change until it returns false.
func changes(t *testing.T, e *searching, id string, next func(conversations.Change) bool) {
	t.Helper()
	for change, err := range e.Conversations.Follow(t.Context(), continuo.Scope{ProjectID: "p"}, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if !next(change) {
			return
		}
	}
}

func TestAFollowerThatHasBegunMissesNoProperty(t *testing.T) {
	e, _, _ := searched(t, storetest.NewMemory(), false)
	conversation, err := e.Log.Create(t.Context(), continuo.Conversation{ProjectID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	changes(t, e, conversation.ID, func(change conversations.Change) bool {
		if change == (conversations.Change{}) {
			title := "changed at once"
			if _, err := e.Log.Update(t.Context(), conversation.ID, continuo.ConversationChange{Title: &title}); err != nil {
				t.Fatal(err)
			}
			return true
		}
		if change.Conversation == nil || change.Conversation.Title != "changed at once" {
			t.Errorf("%+v", change)
		}
		return false
	})
}

func TestAFollowerGetsTheEntriesOfATurnBeforeIt(t *testing.T) {
	store := &atTurns{Store: storetest.NewMemory(), before: func() {}}
	e, _, _ := searched(t, store, false)
	conversation, err := e.Log.Create(t.Context(), continuo.Conversation{ProjectID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() {
		store.before = func() {}
		question := []continuo.Entry{{Role: continuo.User, Content: continuo.Text("a question")}}
		_, err := e.Log.Append(t.Context(), conversation.ID, question, continuo.AppendOptions{Begin: func([]continuo.Entry) *continuo.TurnBegin {
			return &continuo.TurnBegin{Turn: continuo.Turn{ID: "t", ConversationID: conversation.ID, Owner: "one"}, Lease: time.Hour}
		}})
		if err != nil {
			t.Error(err)
		}
	}
	var got []string
	changes(t, e, conversation.ID, func(change conversations.Change) bool {
		switch {
		case change == (conversations.Change{}):
			store.before = begin // while the follower reads what is new
		case change.Entry != nil:
			got = append(got, "entry")
		case change.Turn != nil:
			got = append(got, "turn")
		}
		return change.Turn == nil
	})
	if len(got) != 2 || got[0] != "entry" {
		t.Errorf("%q, want the entry and then the turn that began with it", got)
	}
}
