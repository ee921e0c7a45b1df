package start

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

	"go.opentelemetry.io/otel/trace"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/internal/charged"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/turn"
)

// Turns begins, resumes and follows the turns of conversations.
type Turns struct {
	log     *continuo.Log
	catalog *catalog.Catalog
	metrics *metrics.Metrics
	options Options
	keeper  *turn.Keeper
	life    *lifecycle.Lifecycle
	lanes   lanes
	active  activeTurns
}

// Options configures Turns.
type Options struct {
	Keeper turn.KeeperOptions
	// TakeUp decides on a turn whose process is gone.
	TakeUp func(ctx context.Context, seen continuo.Turn) (turn.Recovery, error)
	// After is called when a turn has ended, with its conversation before the turn.
	After func(conversation continuo.Conversation, ended continuo.Turn, runner *turn.Runner)
	// Requests makes requests that no log has. Its Admit refuses what a payer's budgets do not allow; see ledger.Budgets.
	Requests charged.Requests
	Wait     time.Duration // for other turns of the conversation
	Logger   *slog.Logger
	LogText  bool
	Tracer   trace.Tracer
}

// New makes Turns, and the keeper of their turns.
func New(log *continuo.Log, catalog *catalog.Catalog, life *lifecycle.Lifecycle, metrics *metrics.Metrics, options Options) (*Turns, *turn.Keeper) {
	ts := &Turns{log: log, catalog: catalog, metrics: metrics, options: options, life: life}
	keeping := options.Keeper
	keeping.Log, keeping.Observe, keeping.Meter, keeping.TakeUp = log, ts.observe, meter{metrics, options.Tracer}, options.TakeUp
	keeping.Admit = ts.admitRequest
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
	// NoMemory says that nothing may be remembered of the turn.
	NoMemory bool
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
	policy, err := ts.check(ctx, request)
	if err != nil {
		return nil, err
	}
	for {
		conversation, err := ts.find(ctx, request)
		if err != nil {
			return nil, err
		}
		chat, err := ts.chatIn(ctx, request, conversation, policy)
		if err == nil {
			audit.About(ctx, chat.Conversation.ID)
		}
		if conversation.ID == "" && conversation.Key != "" && errors.Is(err, continuo.ErrExists) {
			if err := ts.isReachable(ctx, request, conversation.Key); err != nil {
				return nil, err
			}
			continue // created meanwhile
		}
		return chat, err
	}
}

// chatIn begins the turn of a request in a conversation that find has found, or with the conversation that it describes.
func (ts *Turns) chatIn(ctx context.Context, request ChatRequest, conversation continuo.Conversation, policy OnBusy) (*Chat, error) {
	asked := request.choice(conversation)
	chosen, err := ts.catalog.Resolve(asked)
	if err != nil {
		return nil, err
	}
	runner := ts.catalog.Runner(chosen)
	if err := runner.CheckFits(ctx, conversation, request.Message); err != nil { // before a conversation is created for it
		return nil, err
	}
	created := conversation.ID == ""
	if created {
		conversation, err = ts.log.NewConversation(conversation)
	} else {
		conversation, err = ts.open(ctx, request, conversation)
	}
	if err != nil {
		return nil, err
	}
	prepare := func(_ context.Context, now continuo.Conversation) (*turn.Runner, turn.Input, error) {
		input := turn.Input{Message: request.Message, Fits: true, Mode: chosen.Mode, AgentID: chosen.Agent, NoMemory: request.NoMemory}
		if request.choice(now) == asked {
			return runner, input, nil
		}
		again, err := ts.catalog.Resolve(request.choice(now))
		if err != nil {
			return nil, turn.Input{}, err
		}
		return ts.catalog.Runner(again), turn.Input{Message: request.Message, Mode: again.Mode, AgentID: again.Agent, NoMemory: request.NoMemory}, nil
	}
	requested, same := ts.requestedTurnOf(conversation, request, chosen), request.Key != ""
	if !same {
		requested, same = ts.findRetried(ctx, conversation, requested, request)
	}
	return ts.once(ctx, requestedTurn{
		conversation: conversation, create: created, wanted: requested, same: same, policy: policy, detached: request.Detached,
		begin: prepare, resume: func(failed continuo.Turn) Prepare { return ts.prepareResume(failed, request.choice) },
	})
}

// requestedTurnOf is the turn that a request asks for. The id of a turn with a key is derived from the key, so that
// the key begins one turn only.
func (ts *Turns) requestedTurnOf(conversation continuo.Conversation, request ChatRequest, chosen catalog.ResolvedTurn) continuo.Turn {
	requested := continuo.Turn{ID: ts.log.NewID("turn"), ConversationID: conversation.ID}
	requested.Mode, requested.AgentID, requested.View, requested.Model = chosen.Mode, chosen.Agent, chosen.ViewName, chosen.Model
	if request.Key != "" {
		ts.identify(&requested, request.Key, string(rawjson.MustMarshal(request.Message)))
	}
	return requested
}

// choice is what a request asks for in a conversation.
func (r ChatRequest) choice(conversation continuo.Conversation) catalog.TurnSpec {
	mode, agent := catalog.ModeAndAgent(conversation, r.Mode, r.AgentID)
	return catalog.TurnSpec{Mode: mode, Agent: agent, Model: r.Model, ViewName: r.View, UsualView: r.UsualView, NoMemory: r.NoMemory}
}

// identify derives a turn's id from its key, and stores the hash of the request in it. Without a key it does nothing.
func (ts *Turns) identify(requested *continuo.Turn, key, asked string) {
	if key == "" {
		return
	}
	requested.ID = keyedTurn(requested.ConversationID, key)
	requested.Fingerprint = brief.Hash(asked)
}

// keyedTurn is the id of the first turn that a key begins in a conversation.
func keyedTurn(conversationID, key string) string {
	return "turn_" + strings.TrimPrefix(conversationID, "conv_") + "_" + brief.Hash(key)[:12]
}

// check makes the checks that need no conversation.
func (ts *Turns) check(ctx context.Context, request ChatRequest) (OnBusy, error) {
	policy, err := ParseOnBusy(string(request.OnBusy))
	if err != nil {
		return "", err
	}
	switch request.Mode {
	case "", continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun:
	default:
		return "", fmt.Errorf("mode %q: %w; allowed: chat, agent, run", request.Mode, continuo.ErrInvalid)
	}
	if err := CheckMessage(request.Message); err != nil {
		return "", err
	}
	if !utf8.ValidString(request.Message.String()) {
		return "", fmt.Errorf("%w: the message is not valid UTF-8", continuo.ErrInvalid)
	}
	if ts.life.IsClosed() {
		return "", lifecycle.ErrClosing // before a conversation is created for it
	}
	if request.Key == "" { // one with a key may have begun its turn already
		if err := ts.life.AwaitPlace(ctx, request.Scope.ProjectID); err != nil {
			return "", err
		}
	}
	return policy, nil
}

// Open finds the conversation of a request or creates it.
func (ts *Turns) Open(ctx context.Context, request ChatRequest) (continuo.Conversation, error) {
	found, err := ts.find(ctx, request)
	if err != nil {
		return continuo.Conversation{}, err
	}
	return ts.open(ctx, request, found)
}

// OpenWithinBudget is Open for what is about to ask models: where a budget of the payer is used up, it fails, and creates nothing.
func (ts *Turns) OpenWithinBudget(ctx context.Context, request ChatRequest) (continuo.Conversation, error) {
	found, err := ts.find(ctx, request)
	if err != nil {
		return continuo.Conversation{}, err
	}
	payer, _ := continuo.PayerOf(ctx)
	payer.ProjectID, payer.UserID = request.Scope.ProjectID, cmp.Or(found.UserID, request.Scope.UserID, request.UserID)
	if err := ts.CheckBudget(ctx, payer); err != nil {
		return continuo.Conversation{}, err
	}
	return ts.open(ctx, request, found)
}

// find finds the conversation of a request, which must take messages. The result has no id where the request creates the
// conversation.
func (ts *Turns) find(ctx context.Context, request ChatRequest) (continuo.Conversation, error) {
	created, err := request.created()
	if err != nil || created.Key == "" {
		return created, err
	}
	conversation, err := ts.log.Find(ctx, request.Scope, created.Key)
	switch {
	case err == nil:
		return conversation, conversations.TakesMessages(conversation)
	case !errors.Is(err, continuo.ErrNotFound) || conversations.OwnID.MatchString(created.Key):
		return conversation, err
	}
	return created, conversations.CheckKey(created.Key)
}

// created is the conversation that a request creates where it does not exist.
func (r ChatRequest) created() (continuo.Conversation, error) {
	user, err := r.Scope.Owner(r.UserID)
	created := continuo.Conversation{
		ProjectID: r.Scope.ProjectID, UserID: user, Key: r.SessionID, Title: conversations.TitleOf(r.Message), ActiveMode: continuo.ModeChat,
	}
	if r.SessionID == "" && r.Key != "" {
		created.Key = conversations.OnceKey(created.Scope(), r.Key) // a retry must find the conversation that the first request created
	}
	return created, err
}

// open claims the conversation that find has found and gives it a title where it has none, or creates it.
func (ts *Turns) open(ctx context.Context, request ChatRequest, found continuo.Conversation) (continuo.Conversation, error) {
	user, err := request.Scope.Owner(request.UserID)
	if err != nil {
		return continuo.Conversation{}, err
	}
	if found.ID != "" {
		claimed, err := ts.claim(ctx, found, user)
		if err != nil {
			return claimed, err
		}
		return ts.entitle(ctx, claimed, request.Message)
	}
	conversation, err := ts.log.Create(ctx, found)
	if found.Key == "" || !errors.Is(err, continuo.ErrExists) {
		return conversation, err
	}
	if err := ts.isReachable(ctx, request, found.Key); err != nil {
		return conversation, err
	}
	if conversation, err = ts.log.Find(ctx, request.Scope, found.Key); err == nil { // created meanwhile
		err = conversations.TakesMessages(conversation)
	}
	if err != nil {
		return conversation, err
	}
	return ts.claim(ctx, conversation, user)
}

// isReachable fails with ErrOtherUser where the conversation that has a key is out of the request's scope.
func (ts *Turns) isReachable(ctx context.Context, request ChatRequest, key string) error {
	_, err := ts.log.Find(ctx, request.Scope, key)
	if errors.Is(err, continuo.ErrNotFound) {
		return fmt.Errorf("session %q: %w: choose another session_id", key, continuo.ErrOtherUser)
	}
	return err
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

// entitle gives an empty conversation without a title the title that it would have if its first message created it.
func (ts *Turns) entitle(ctx context.Context, conversation continuo.Conversation, first continuo.Content) (continuo.Conversation, error) {
	title := conversations.TitleOf(first)
	if conversation.Title != "" || conversation.LastSeq > 0 || title == "" {
		return conversation, nil
	}
	return ts.log.Update(ctx, conversation.ID, continuo.ConversationChange{Title: &title})
}

// CheckMessage refuses an empty message.
func CheckMessage(message continuo.Content) error {
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
	ctx, cancel := context.WithCancelCause(audit.WithSubject(ctx, nil)) // what the turn reads is not what the caller asked for
	stop := context.AfterFunc(ts.life.Closing, func() { cancel(context.Cause(ts.life.Closing)) })
	return ctx, func(cause error) { stop(); cancel(cause) }
}
