package start

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/turn"
)

// requestedTurn is a turn that a request asks for.
type requestedTurn struct {
	conversation continuo.Conversation
	create       bool // the conversation is stored when the turn begins
	wanted       continuo.Turn
	// same says that the id of wanted identifies the request: a turn with that id was started by the same request.
	same     bool
	policy   OnBusy
	detached bool
	begin    Prepare
	// resume prepares a turn that resumes a failed one of the same request.
	resume func(failed continuo.Turn) Prepare
}

// start is a turn of the request that is to begin.
func (r *requestedTurn) start(requested continuo.Turn, prepare Prepare) Request {
	return Request{
		Project: r.conversation.ProjectID, Turn: requested, Conversation: r.conversation, Create: r.create, Policy: r.policy, Detached: r.detached, Prepare: prepare,
	}
}

// once runs the turn of a request. A request that has begun a turn before, in any process, gets that turn. Where that
// turn failed for a reason that may have passed, and the conversation has no later entries, the request resumes it:
// of concurrent requests one does so, and all get its answer.
func (ts *Turns) once(ctx context.Context, r requestedTurn) (*Chat, error) {
	if !r.same || r.create {
		return ts.Start(ctx, r.start(r.wanted, r.begin))
	}
	begun, tries, err := ts.newestTry(ctx, r.conversation.ID, r.wanted.ID)
	if errors.Is(err, continuo.ErrNotFound) {
		return ts.startOnce(ctx, r, r.wanted, r.begin)
	}
	if err != nil {
		return nil, err
	}
	if begun.Fingerprint != r.wanted.Fingerprint {
		return nil, fmt.Errorf("%w: it began turn %s with something else", continuo.ErrKeyReused, begun.ID)
	}
	passed, err := ts.isResumable(ctx, begun)
	if err != nil {
		return nil, err
	}
	if passed {
		next := r.wanted
		next.ID, next.Resumes = tryID(r.wanted.ID, tries+1), begun.ID
		chat, err := ts.startOnce(ctx, r, next, r.resume(begun))
		if !errors.Is(err, ErrNotResumable) { // else the conversation has later entries
			return chat, err
		}
	}
	if begun, _, err = ts.newestTry(ctx, r.conversation.ID, r.wanted.ID); err != nil { // the same request may have been resumed meanwhile
		return nil, err
	}
	return ts.followTurn(ctx, r.conversation, begun.ID), nil
}

// startOnce runs a turn, or follows the turn with its id that the same request has begun meanwhile.
func (ts *Turns) startOnce(ctx context.Context, r requestedTurn, requested continuo.Turn, begin Prepare) (*Chat, error) {
	chat, err := ts.Start(ctx, r.start(requested, begin))
	if !errors.Is(err, continuo.ErrExists) {
		return chat, err
	}
	begun, err := ts.turnNow(ctx, r.conversation.ID, requested.ID)
	if err == nil && begun.Fingerprint != requested.Fingerprint {
		err = fmt.Errorf("%w: it began turn %s with something else", continuo.ErrKeyReused, begun.ID)
	}
	if err != nil {
		return nil, err
	}
	return ts.followTurn(ctx, r.conversation, begun.ID), nil
}

// followTurn is the stream of a turn that runs, or has run, for another request.
func (ts *Turns) followTurn(ctx context.Context, conversation continuo.Conversation, id string) *Chat {
	return &Chat{Conversation: conversation, TurnID: id, Events: ts.counted(ts.keeper.Follow(ctx, conversation.ID, id, 0))}
}

// tryID is the id of the try-th turn of a request; each resumes the one before it.
func tryID(first string, try int) string {
	if try == 1 {
		return first
	}
	return fmt.Sprintf("%s_%d", first, try)
}

// tryOfID is the end of the id of a turn that resumes one of the same request; the last part of other ids has more digits.
var tryOfID = regexp.MustCompile(`_[0-9]{1,9}$`)

// firstTry is the id of the first turn of a request, by that of any of its turns. All tries of a request must agree on it: they
// find each other's turns by it.
func firstTry(id string) string { return tryOfID.ReplaceAllString(id, "") }

// newestTry finds the newest turn of a request, and the number of its turns.
func (ts *Turns) newestTry(ctx context.Context, conversationID, first string) (newest continuo.Turn, tries int, err error) {
	for {
		found, err := ts.turnNow(ctx, conversationID, tryID(first, tries+1))
		if errors.Is(err, continuo.ErrNotFound) && tries > 0 {
			return newest, tries, nil
		}
		if err != nil {
			return newest, tries, err
		}
		newest, tries = found, tries+1
	}
}

// turnNow finds a turn, closed first if its process is gone; ErrNotFound for a void one.
func (ts *Turns) turnNow(ctx context.Context, conversationID, id string) (continuo.Turn, error) {
	found, err := ts.log.Turns().Turn(ctx, conversationID, id)
	if err == nil && found.State == continuo.TurnRunning {
		found, err = ts.keeper.RecoverIfAbandoned(ctx, found) // a turn that broke off before it had begun becomes void
	}
	if err == nil && found.State == continuo.TurnVoid {
		err = continuo.ErrNotFound
	}
	return found, err
}

// isResumable reports whether a turn failed for a reason that may have passed, and can be resumed.
func (ts *Turns) isResumable(ctx context.Context, begun continuo.Turn) (bool, error) {
	if begun.State != continuo.TurnFailed || begun.Reason == continuo.ReasonCancelled {
		return false, nil
	}
	failure, err := ts.FailureOf(ctx, begun)
	if err != nil || failure == nil || !failure.Retryable {
		return false, err
	}
	err = ts.checkResumable(ctx, begun, false)
	if errors.Is(err, ErrNotResumable) {
		return false, nil
	}
	return err == nil, err
}

// prepareResume prepares a turn that resumes a failed one.
func (ts *Turns) prepareResume(failed continuo.Turn, choose func(continuo.Conversation) catalog.TurnSpec) Prepare {
	return func(ctx context.Context, conversation continuo.Conversation) (*turn.Runner, turn.Input, error) {
		if err := ts.checkResumable(ctx, failed, false); err != nil {
			return nil, turn.Input{}, err
		}
		asked, err := choose(conversation), error(nil)
		if !asked.NoMemory {
			asked.NoMemory, err = ts.isWithoutMemory(ctx, conversation, failed.ID)
		}
		if err != nil {
			return nil, turn.Input{}, err
		}
		chosen, err := ts.catalog.Resolve(asked)
		if err != nil {
			return nil, turn.Input{}, err
		}
		return ts.catalog.Runner(chosen), turn.Input{Resume: true, Mode: chosen.Mode, AgentID: chosen.Agent, NoMemory: asked.NoMemory}, nil
	}
}

// isWithoutMemory reports whether nothing may be remembered of the newest turn of a conversation.
func (ts *Turns) isWithoutMemory(ctx context.Context, conversation continuo.Conversation, turnID string) (bool, error) {
	for entry, err := range ts.log.ReadShared(ctx, conversation, continuo.Range{Backward: true}) {
		switch {
		case err != nil:
			return false, err
		case entry.TurnID == turnID && entry.NoMemory:
			return true, nil
		case entry.TurnID != "" && entry.TurnID != turnID:
			return false, nil
		}
	}
	return false, nil
}

// retryWindow is how long after a turn's beginning a library may retry its request: official ones wait for ten
// minutes.
const retryWindow = 15 * time.Minute

// findRetried finds the first turn that earlier tries of a request without a key have begun. It applies where the client's
// library marks the request as a retry, the requests are identical, and the conversation has no later entries. The
// turn may still wait for its conversation in this process; one that waits in another process is not found.
func (ts *Turns) findRetried(ctx context.Context, conversation continuo.Conversation, requested continuo.Turn, request ChatRequest) (continuo.Turn, bool) {
	if request.Retry == nil {
		return requested, false
	}
	requested.Fingerprint = brief.Hash(string(rawjson.MustMarshal(request.Message)))
	if *request.Retry == 0 {
		return requested, false
	}
	if id, ok := ts.active.find(requested); ok {
		requested.ID = firstTry(id)
		return requested, true
	}
	newest, err := ts.log.Turns().Turns(ctx, continuo.TurnQuery{ConversationID: conversation.ID, Limit: 1})
	if err != nil || len(newest) == 0 || !sameRequest(newest[0], requested) || ts.log.Now().Sub(newest[0].StartedAt) > retryWindow {
		return requested, false
	}
	if conversation, err = ts.log.Conversation(ctx, conversation.ID); err != nil { // including all entries up to its newest turn
		return requested, false
	}
	for entry, err := range ts.log.Read(ctx, conversation, continuo.Range{Backward: true}) {
		// A turn that resumes another one may have appended nothing yet.
		if err != nil || entry.TurnID != newest[0].ID && (entry.TurnID == "" || entry.TurnID != newest[0].Resumes) {
			return requested, false
		}
		break
	}
	requested.ID = firstTry(newest[0].ID)
	return requested, true
}

// sameRequest reports whether two turns of a conversation come from equal requests.
func sameRequest(a, b continuo.Turn) bool {
	return a.Fingerprint == b.Fingerprint && a.Fingerprint != "" && a.Mode == b.Mode && a.AgentID == b.AgentID && a.View == b.View && a.Model == b.Model
}
