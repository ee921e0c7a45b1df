package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/turn"
)

// requestedTurn is a turn that a request asks for.
type requestedTurn struct {
	conversation continuo.Conversation
	wanted       continuo.Turn
	// same says that the id of wanted is the request's own: a turn of that id was begun by the same request.
	same     bool
	policy   OnBusy
	detached bool
	begin    prepareFunc
	// resume begins the turn that goes on with one of the request that failed.
	resume func(failed continuo.Turn) prepareFunc
}

// once carries a turn out. A request that has begun a turn before, here or elsewhere, gets that turn. Where the turn
// failed for a reason that may have passed, and the conversation has not gone on since, the request goes on with it: of
// requests that come at once one does, and all get its answer.
func (e *Engine) once(ctx context.Context, r requestedTurn) (*Chat, error) {
	if !r.same {
		return e.startTurn(withSession(ctx, r.conversation), r.conversation.ProjectID, r.wanted, r.policy, r.detached, r.begin)
	}
	begun, tries, err := e.newestTry(ctx, r.conversation.ID, r.wanted.ID)
	if errors.Is(err, continuo.ErrNotFound) {
		return e.startOnce(ctx, r, r.wanted, r.begin)
	}
	if err != nil {
		return nil, err
	}
	if begun.Fingerprint != r.wanted.Fingerprint {
		return nil, fmt.Errorf("%w: it began turn %s with something else", continuo.ErrKeyReused, begun.ID)
	}
	passed, err := e.mayHavePassed(ctx, begun)
	if err != nil {
		return nil, err
	}
	if passed {
		next := r.wanted
		next.ID, next.Resumes = tryID(r.wanted.ID, tries+1), begun.ID
		chat, err := e.startOnce(ctx, r, next, r.resume(begun))
		if !errors.Is(err, ErrNotResumable) { // else the conversation has gone on meanwhile
			return chat, err
		}
	}
	if begun, _, err = e.newestTry(ctx, r.conversation.ID, r.wanted.ID); err != nil { // the same request may have gone on since
		return nil, err
	}
	return e.following(ctx, r.conversation, begun.ID), nil
}

// startOnce carries a turn out, or follows the one of its id that the same request has begun meanwhile.
func (e *Engine) startOnce(ctx context.Context, r requestedTurn, wanted continuo.Turn, begin prepareFunc) (*Chat, error) {
	chat, err := e.startTurn(withSession(ctx, r.conversation), r.conversation.ProjectID, wanted, r.policy, r.detached, begin)
	if !errors.Is(err, continuo.ErrExists) {
		return chat, err
	}
	begun, err := e.turnNow(ctx, r.conversation.ID, wanted.ID)
	if err == nil && begun.Fingerprint != wanted.Fingerprint {
		err = fmt.Errorf("%w: it began turn %s with something else", continuo.ErrKeyReused, begun.ID)
	}
	if err != nil {
		return nil, err
	}
	return e.following(ctx, r.conversation, begun.ID), nil
}

// following is a turn that runs, or has run, for another request.
func (e *Engine) following(ctx context.Context, conversation continuo.Conversation, id string) *Chat {
	return &Chat{Conversation: conversation, TurnID: id, Events: e.counted(e.keeper.Follow(ctx, conversation.ID, id, 0))}
}

// tryID is the id of a request's turn that goes on with those before it.
func tryID(first string, try int) string {
	if try == 1 {
		return first
	}
	return fmt.Sprintf("%s_%d", first, try)
}

// newestTry finds the newest turn of a request, and how many it has.
func (e *Engine) newestTry(ctx context.Context, conversationID, first string) (newest continuo.Turn, tries int, err error) {
	for {
		found, err := e.turnNow(ctx, conversationID, tryID(first, tries+1))
		if errors.Is(err, continuo.ErrNotFound) && tries > 0 {
			return newest, tries, nil
		}
		if err != nil {
			return newest, tries, err
		}
		newest, tries = found, tries+1
	}
}

// turnNow finds a turn, closed first if its process is gone; ErrNotFound for one that is void.
func (e *Engine) turnNow(ctx context.Context, conversationID, id string) (continuo.Turn, error) {
	found, err := e.Log.Turns().Turn(ctx, conversationID, id)
	if err == nil && found.State == continuo.TurnRunning {
		found, err = e.keeper.RecoverIfAbandoned(ctx, found) // one that broke off before it had begun is void then
	}
	if err == nil && found.State == continuo.TurnVoid {
		err = continuo.ErrNotFound
	}
	return found, err
}

// mayHavePassed reports whether a turn failed for a reason that may have passed, and can be resumed.
func (e *Engine) mayHavePassed(ctx context.Context, begun continuo.Turn) (bool, error) {
	if begun.State != continuo.TurnFailed || begun.Reason == continuo.ReasonCancelled {
		return false, nil
	}
	failure, err := e.failureOf(ctx, begun)
	if err != nil || failure == nil || !failure.Retryable {
		return false, err
	}
	err = e.checkResumable(ctx, begun, false)
	if errors.Is(err, ErrNotResumable) {
		return false, nil
	}
	return err == nil, err
}

// prepareResume begins a turn that goes on with one that failed.
func (e *Engine) prepareResume(failed continuo.Turn, choose func(continuo.Conversation) turnChoice) prepareFunc {
	return func(ctx context.Context, conversation continuo.Conversation) (*turn.Runner, turn.Input, error) {
		if err := e.checkResumable(ctx, failed, false); err != nil {
			return nil, turn.Input{}, err
		}
		chosen, err := e.resolve(choose(conversation))
		if err != nil {
			return nil, turn.Input{}, err
		}
		return e.runner(chosen), turn.Input{Resume: true, Mode: chosen.mode, AgentID: chosen.agent}, nil
	}
}

// retryWindow is how long after its turn began a library may make a request again: official ones wait for ten minutes.
const retryWindow = 15 * time.Minute

// madeBefore finds the turn that a request without a key has begun before, where its client's library says that it makes
// the request again: an identical request, with nothing in the conversation since. The turn may still wait for its
// conversation in this process; one that waits in another process is not found.
func (e *Engine) madeBefore(ctx context.Context, conversation continuo.Conversation, wanted continuo.Turn, request ChatRequest) (continuo.Turn, bool) {
	if request.Retry == nil {
		return wanted, false
	}
	wanted.Fingerprint = hashOf(string(rawjson.MustMarshal(request.Message)))
	if *request.Retry == 0 {
		return wanted, false
	}
	if id, ok := e.asked.find(wanted); ok {
		wanted.ID = id
		return wanted, true
	}
	newest, err := e.Log.Turns().Turns(ctx, continuo.TurnQuery{ConversationID: conversation.ID, Limit: 1})
	if err != nil || len(newest) == 0 || !sameRequest(newest[0], wanted) || e.Log.Now().Sub(newest[0].StartedAt) > retryWindow {
		return wanted, false
	}
	if conversation, err = e.Log.Conversation(ctx, conversation.ID); err != nil { // with all that came before its newest turn
		return wanted, false
	}
	for entry, err := range e.Log.Read(ctx, conversation, continuo.Range{Backward: true}) {
		// A turn that goes on with another one may have appended nothing yet.
		if err != nil || entry.TurnID != newest[0].ID && (entry.TurnID == "" || entry.TurnID != newest[0].Resumes) {
			return wanted, false
		}
		break
	}
	wanted.ID = newest[0].ID
	return wanted, true
}

// sameRequest reports whether two turns of a conversation were asked for in the same way.
func sameRequest(a, b continuo.Turn) bool {
	return a.Fingerprint == b.Fingerprint && a.Fingerprint != "" && a.Mode == b.Mode && a.AgentID == b.AgentID && a.View == b.View && a.Model == b.Model
}
