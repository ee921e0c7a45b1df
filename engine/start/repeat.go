package start

import (
	"context"
	"errors"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/conversations"
)

// Repeat says how a client's request may be recognised when it is sent again. The zero value is of a request that is never
// taken for an earlier one.
type Repeat struct {
	// Key is the idempotency key; "" for none.
	Key string
	// Fingerprint is a hash of the request.
	Fingerprint string
	// Again says that the client's library sends the request again, without a key.
	Again bool
}

// ClientKey is the key of a conversation that a client's request with an idempotency key creates. Such keys are not those of
// messages.
func (r Repeat) ClientKey(scope continuo.Scope) string {
	return conversations.OnceKey(scope, "client\n"+r.Key) // no key contains a line break
}

// Repeated follows the turn that an earlier try of a client's request has begun: in one of some conversations, or in the one
// that the first try created. It is nil where there is none, or where the turn failed.
func (ts *Turns) Repeated(ctx context.Context, scope continuo.Scope, repeat Repeat, in ...continuo.Conversation) (*Chat, error) {
	if repeat.Key != "" {
		created, err := ts.log.Find(ctx, scope, repeat.ClientKey(scope))
		switch {
		case err == nil:
			in = append(in, created)
		case !errors.Is(err, continuo.ErrNotFound):
			return nil, err
		}
	}
	for _, conversation := range in {
		begun, err := ts.repeatedIn(ctx, conversation, repeat)
		if err != nil {
			return nil, err
		}
		if begun.ID != "" && begun.State != continuo.TurnFailed {
			return ts.followFrom(ctx, conversation, begun)
		}
	}
	return nil, nil
}

// repeatedIn finds the newest turn of a request in a conversation; one without an id for none.
func (ts *Turns) repeatedIn(ctx context.Context, conversation continuo.Conversation, repeat Repeat) (continuo.Turn, error) {
	if repeat.Key == "" {
		newest, err := ts.log.Turns().Turns(ctx, continuo.TurnQuery{ConversationID: conversation.ID, Limit: 1})
		if err != nil || len(newest) == 0 {
			return continuo.Turn{}, err
		}
		again, err := ts.IsRepeated(ctx, conversation, newest[0].ID, repeat)
		if err != nil || !again {
			return continuo.Turn{}, err
		}
		return newest[0], nil
	}
	begun, _, err := ts.newestTry(ctx, conversation.ID, keyedTurn(conversation.ID, repeat.Key))
	if errors.Is(err, continuo.ErrNotFound) {
		return continuo.Turn{}, nil
	}
	if err == nil && begun.Fingerprint != repeat.Fingerprint {
		err = fmt.Errorf("%w: it began turn %s with something else", continuo.ErrKeyReused, begun.ID)
	}
	return begun, err
}

// IsRepeated reports whether a turn of a conversation is that of an earlier try of a client's request. Without a key it is, if
// it is the newest one and an equal request began it a short time ago.
func (ts *Turns) IsRepeated(ctx context.Context, conversation continuo.Conversation, turnID string, repeat Repeat) (bool, error) {
	if repeat.Key != "" {
		first := keyedTurn(conversation.ID, repeat.Key)
		return turnID == first || strings.HasPrefix(turnID, first+"_"), nil
	}
	if !repeat.Again || repeat.Fingerprint == "" {
		return false, nil
	}
	newest, err := ts.log.Turns().Turns(ctx, continuo.TurnQuery{ConversationID: conversation.ID, Limit: 1})
	if err != nil || len(newest) == 0 {
		return false, err
	}
	begun := &newest[0]
	return begun.ID == turnID && begun.Fingerprint == repeat.Fingerprint && ts.log.Now().Sub(begun.StartedAt) <= retryWindow, nil
}

// followFrom follows a turn that an earlier request began. The conversation that it returns ends before the turn's entries, as
// it did for that request.
func (ts *Turns) followFrom(ctx context.Context, conversation continuo.Conversation, begun continuo.Turn) (*Chat, error) {
	conversation, err := ts.log.Conversation(ctx, conversation.ID)
	if err != nil {
		return nil, err
	}
	before, found := conversation.LastSeq, false
	for entry, err := range ts.log.ReadShared(ctx, conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return nil, err
		}
		if is := entry.TurnID == begun.ID; found && !is {
			break
		} else if is {
			found = true
		}
		before = entry.Seq - 1
	}
	if found {
		conversation.LastSeq = before
	}
	return ts.followTurn(ctx, conversation, begun.ID), nil
}
