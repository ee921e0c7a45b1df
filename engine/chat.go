package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/turn"
	"go.opentelemetry.io/otel/trace"
)

// Turns begins, resumes and follows the turns of conversations.
type Turns struct {
	log     *continuo.Log
	catalog *Catalog
	metrics *Metrics
	options turnsOptions
	keeper  *turn.Keeper
	life    *lifecycle
	lanes   lanes
	asked   askedTurns
}

// turnsOptions configures Turns.
type turnsOptions struct {
	Keeper turn.KeeperOptions
	// TakeUp decides on a turn whose process is gone.
	TakeUp func(ctx context.Context, seen continuo.Turn) (turn.Fate, error)
	// Before is called when a turn has its conversation's lease, before its input is appended.
	Before  func(journal *turn.Journal, runner *turn.Runner, input turn.Input)
	Wait    time.Duration // for other turns of the conversation
	Logger  *slog.Logger
	LogText bool
	Tracer  trace.Tracer
}

// newTurns makes Turns, and the keeper of their turns.
func newTurns(log *continuo.Log, catalog *Catalog, life *lifecycle, metrics *Metrics, options turnsOptions) (*Turns, *turn.Keeper) {
	ts := &Turns{log: log, catalog: catalog, metrics: metrics, options: options, life: life}
	keeping := options.Keeper
	keeping.Log, keeping.Observe, keeping.Meter, keeping.TakeUp = log, ts.observe, meter{metrics, options.Tracer}, options.TakeUp
	ts.keeper = turn.NewKeeper(keeping)
	return ts, ts.keeper
}

// ChatRequest is a request to begin a turn.
type ChatRequest struct {
	// Scope is what the caller may reach. A conversation that the request creates belongs to the scope's user.
	Scope continuo.Scope
	// UserID is the conversation's user where the scope has none: a conversation without a user is assigned to this one,
	// and one of another user is ErrOtherUser. "": the conversation's user is neither checked nor changed.
	UserID string
	// SessionID is a conversation's id or key. An unknown key creates a conversation; "" creates one without a key.
	SessionID string
	Message   continuo.Content
	// Mode is the mode of the turn, and AgentID the agent that answers; both become the conversation's. "": unchanged.
	// An agent without a mode implies the mode agent.
	Mode    continuo.Mode
	AgentID string
	// Model and View are names; "" means those of the agent, else the default model and UsualView.
	Model, View string
	// UsualView is the view where neither the request nor the agent names one. Default: continuity in the mode chat,
	// codex in the others.
	UsualView string
	OnBusy    OnBusy
	// Key is the idempotency key; "" for none.
	Key string
	// Retry is the retry count that the client's library sends with the request, as the official ones do; nil where it
	// sends none.
	Retry *int
	// Detached lets the turn continue when the caller's context ends.
	Detached bool
}

// Chat is a turn that is running or has ended.
type Chat struct {
	Conversation continuo.Conversation
	TurnID       string
	// Events yields the turn's events from the first to the last. The caller must range over it once; leaving the loop
	// early stops the turn unless it is detached.
	Events iter.Seq2[turn.Event, error]
}

// Chat checks a request, finds or creates its conversation, waits until the conversation is free, and begins the
// turn. For a key that has already begun a turn, Chat returns that turn, whichever process runs it.
func (ts *Turns) Chat(ctx context.Context, request ChatRequest) (*Chat, error) {
	policy, err := ts.prepare(ctx, request)
	if err != nil {
		return nil, err
	}
	conversation, err := ts.session(ctx, request)
	if err != nil {
		return nil, err
	}
	wanted, err := ts.requestedTurnOf(conversation, request)
	if err != nil {
		return nil, err
	}
	begin := func(_ context.Context, now continuo.Conversation) (*turn.Runner, turn.Input, error) {
		chosen, err := ts.catalog.resolve(request.choice(now))
		if err != nil {
			return nil, turn.Input{}, err
		}
		return ts.catalog.runner(chosen), turn.Input{Message: request.Message, Mode: chosen.mode, AgentID: chosen.agent}, nil
	}
	same := request.Key != ""
	if !same {
		wanted, same = ts.madeBefore(ctx, conversation, wanted, request)
	}
	return ts.once(ctx, requestedTurn{
		conversation: conversation, wanted: wanted, same: same, policy: policy, detached: request.Detached,
		begin: begin, resume: func(failed continuo.Turn) prepareFunc { return ts.prepareResume(failed, request.choice) },
	})
}

// requestedTurnOf is the turn that a request asks for. The id of a turn with a key is derived from the key, so that
// the key begins one turn only.
func (ts *Turns) requestedTurnOf(conversation continuo.Conversation, request ChatRequest) (continuo.Turn, error) {
	wanted := continuo.Turn{ID: ts.log.NewID("turn"), ConversationID: conversation.ID}
	chosen, err := ts.catalog.resolve(request.choice(conversation))
	if err != nil {
		return continuo.Turn{}, err
	}
	wanted.Mode, wanted.AgentID, wanted.View, wanted.Model = chosen.mode, chosen.agent, chosen.viewName, chosen.model
	ts.identify(&wanted, request.Key, string(rawjson.MustMarshal(request.Message)))
	return wanted, nil
}

// choice is what a request asks for in a conversation.
func (r ChatRequest) choice(conversation continuo.Conversation) turnChoice {
	mode, agent := modeAndAgent(conversation, r.Mode, r.AgentID)
	return turnChoice{mode: mode, agent: agent, model: r.Model, viewName: r.View, usualView: r.UsualView}
}

// identify derives a turn's id from its key, and stores the hash of the request in it. Without a key it does nothing.
func (ts *Turns) identify(wanted *continuo.Turn, key, asked string) {
	if key == "" {
		return
	}
	wanted.ID = "turn_" + strings.TrimPrefix(wanted.ConversationID, "conv_") + "_" + hashOf(key)[:12]
	wanted.Fingerprint = hashOf(asked)
}

// prepare makes all the checks that need no conversation.
func (ts *Turns) prepare(ctx context.Context, request ChatRequest) (OnBusy, error) {
	policy, err := ParseOnBusy(string(request.OnBusy))
	if err != nil {
		return "", err
	}
	switch request.Mode {
	case "", continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun:
	default:
		return "", fmt.Errorf("mode %q: %w: known are chat, agent, run", request.Mode, continuo.ErrInvalid)
	}
	if err := checkMessage(request.Message); err != nil {
		return "", err
	}
	if !utf8.ValidString(request.Message.String()) {
		return "", fmt.Errorf("%w: the message is not valid UTF-8", continuo.ErrInvalid)
	}
	if ts.life.isClosed() {
		return "", ErrClosing // before a conversation is created for it
	}
	if request.Key == "" { // one with a key may have begun its turn already
		if err := ts.life.quota.room(ctx, request.Scope.ProjectID); err != nil {
			return "", err
		}
	}
	chosen, err := ts.catalog.resolve(request.choice(continuo.Conversation{ActiveMode: continuo.ModeChat}))
	if err != nil {
		return "", err
	}
	return policy, ts.catalog.runner(chosen).CheckFits(ctx, continuo.Conversation{ProjectID: request.Scope.ProjectID}, request.Message)
}

// session finds the conversation of a request or creates it, and checks that it takes messages.
func (ts *Turns) session(ctx context.Context, request ChatRequest) (continuo.Conversation, error) {
	conversation, err := ts.findOrBegin(ctx, request)
	if err == nil {
		err = TakesMessages(conversation)
	}
	return conversation, err
}

func (ts *Turns) findOrBegin(ctx context.Context, request ChatRequest) (continuo.Conversation, error) {
	user, err := request.Scope.Owner(request.UserID)
	if err != nil {
		return continuo.Conversation{}, err
	}
	begin := continuo.Conversation{ProjectID: request.Scope.ProjectID, UserID: user, Key: request.SessionID, Title: titleOf(request.Message)}
	if request.SessionID == "" {
		if request.Key == "" {
			return ts.log.Create(ctx, begin)
		}
		begin.Key = onceKey(begin.Scope(), request.Key) // a retry must find the conversation that the first request created
	}
	conversation, err := ts.log.Find(ctx, request.Scope, begin.Key)
	switch {
	case err == nil:
		return ts.claim(ctx, conversation, user)
	case !errors.Is(err, continuo.ErrNotFound) || ownID.MatchString(begin.Key):
		return conversation, err
	}
	if err := CheckKey(begin.Key); err != nil {
		return continuo.Conversation{}, err
	}
	conversation, err = ts.log.Create(ctx, begin)
	if !errors.Is(err, continuo.ErrExists) {
		return conversation, err
	}
	conversation, err = ts.log.Find(ctx, request.Scope, begin.Key) // created meanwhile, or out of the scope
	if errors.Is(err, continuo.ErrNotFound) {
		return conversation, fmt.Errorf("session %q: %w: choose another session_id", begin.Key, continuo.ErrOtherUser)
	}
	if err != nil {
		return conversation, err
	}
	return ts.claim(ctx, conversation, user)
}

// claim assigns a conversation without a user to a user; ErrOtherUser where it has another one. For the user "" it
// does nothing.
func (ts *Turns) claim(ctx context.Context, conversation continuo.Conversation, user string) (continuo.Conversation, error) {
	if user == "" || conversation.UserID == user {
		return conversation, nil
	}
	if conversation.UserID == "" {
		claimed, err := ts.log.Update(ctx, conversation.ID, continuo.ConversationChange{Claim: &user})
		if err != nil || claimed.UserID == user {
			return claimed, err
		}
	}
	return continuo.Conversation{}, fmt.Errorf("session %q: %w: choose another session_id", cmp.Or(conversation.Key, conversation.ID), continuo.ErrOtherUser)
}

// checkMessage refuses an empty message.
func checkMessage(message continuo.Content) error {
	if message.IsBlank() {
		return fmt.Errorf("%w: the message has no visible text; write some text", continuo.ErrInvalid)
	}
	return nil
}

// turnContext returns the context of a turn: the caller's, or for a detached turn one that only the engine's shutdown
// cancels.
func (ts *Turns) turnContext(ctx context.Context, detached bool) (context.Context, context.CancelCauseFunc) {
	if detached {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ts.life.closing, func() { cancel(context.Cause(ts.life.closing)) })
	return ctx, func(cause error) { stop(); cancel(cause) }
}
