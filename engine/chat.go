package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/turn"
)

// ChatRequest begins a turn.
type ChatRequest struct {
	// Scope is what the caller may reach. A conversation that the request begins is its user's.
	Scope continuo.Scope
	// UserID is whose conversation it is to be, where the scope does not say: one that is nobody's becomes this
	// user's, and one that is another user's is ErrOtherUser. "": whoever's it is.
	UserID string
	// SessionID is a conversation's id or key. A key that is not known yet begins a conversation; "" begins
	// one without a key.
	SessionID string
	Message   continuo.Content
	// Mode is the mode of the turn, and AgentID who answers; both stay the conversation's. "": as it is. An
	// agent without a mode is spoken to in the mode agent.
	Mode    continuo.Mode
	AgentID string
	// Model and View are names; "" means those of the agent, else the default model and UsualView.
	Model, View string
	// UsualView is the view where neither the request nor the agent names one. Default continuity in the mode chat,
	// codex in the others.
	UsualView string
	OnBusy    OnBusy
	// Key is the idempotency key; "" for none.
	Key string
	// Retry is how often the client's library has made the request before, as the official ones say; nil where it does
	// not say.
	Retry *int
	// Detached lets the turn go on when the caller's context ends.
	Detached bool
}

// Chat is a turn, under way or over.
type Chat struct {
	Conversation continuo.Conversation
	TurnID       string
	// Events yields the turn's events, from the first to the last. It must be ranged over once; leaving
	// early stops the turn unless it is detached.
	Events iter.Seq2[turn.Event, error]
}

// Chat checks a request, finds or begins its conversation, waits until the conversation is free, and
// begins the turn. With a key that has begun a turn before it gives that turn, wherever it runs.
func (e *Engine) Chat(ctx context.Context, request ChatRequest) (*Chat, error) {
	policy, err := e.prepare(ctx, request)
	if err != nil {
		return nil, err
	}
	conversation, err := e.session(ctx, request)
	if err != nil {
		return nil, err
	}
	wanted, err := e.requestedTurnOf(conversation, request)
	if err != nil {
		return nil, err
	}
	begin := func(_ context.Context, now continuo.Conversation) (*turn.Runner, turn.Input, error) {
		chosen, err := e.resolve(request.choice(now))
		if err != nil {
			return nil, turn.Input{}, err
		}
		return e.runner(chosen), turn.Input{Message: request.Message, Mode: chosen.mode, AgentID: chosen.agent}, nil
	}
	same := request.Key != ""
	if !same {
		wanted, same = e.madeBefore(ctx, conversation, wanted, request)
	}
	return e.once(ctx, requestedTurn{
		conversation: conversation, wanted: wanted, same: same, policy: policy, detached: request.Detached,
		begin: begin, resume: func(failed continuo.Turn) prepareFunc { return e.prepareResume(failed, request.choice) },
	})
}

// requestedTurnOf is the turn that a request asks for. One with a key has an id of the key's own, so that the key
// can begin no second one.
func (e *Engine) requestedTurnOf(conversation continuo.Conversation, request ChatRequest) (continuo.Turn, error) {
	wanted := continuo.Turn{ID: e.Log.NewID("turn"), ConversationID: conversation.ID}
	chosen, err := e.resolve(request.choice(conversation))
	if err != nil {
		return continuo.Turn{}, err
	}
	wanted.Mode, wanted.AgentID, wanted.View, wanted.Model = chosen.mode, chosen.agent, chosen.viewName, chosen.model
	e.identify(&wanted, request.Key, string(rawjson.MustMarshal(request.Message)))
	return wanted, nil
}

// choice is what a request asks for in a conversation.
func (r ChatRequest) choice(conversation continuo.Conversation) turnChoice {
	mode, agent := modeAndAgent(conversation, r.Mode, r.AgentID)
	return turnChoice{mode: mode, agent: agent, model: r.Model, viewName: r.View, usualView: r.UsualView}
}

// identify makes a turn's id of its key, and remembers what was asked for. Without a key it does nothing.
func (e *Engine) identify(wanted *continuo.Turn, key, asked string) {
	if key == "" {
		return
	}
	wanted.ID = "turn_" + strings.TrimPrefix(wanted.ConversationID, "conv_") + "_" + hashOf(key)[:12]
	wanted.Fingerprint = hashOf(asked)
}

// prepare checks everything that can be checked before a conversation is touched.
func (e *Engine) prepare(ctx context.Context, request ChatRequest) (OnBusy, error) {
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
	if e.isClosed() {
		return "", ErrClosing // before a conversation is begun for it
	}
	if request.Key == "" { // one with a key may have begun its turn already
		if err := e.quota.room(ctx, request.Scope.ProjectID); err != nil {
			return "", err
		}
	}
	chosen, err := e.resolve(request.choice(continuo.Conversation{ActiveMode: continuo.ModeChat}))
	if err != nil {
		return "", err
	}
	return policy, e.runner(chosen).CheckFits(ctx, continuo.Conversation{ProjectID: request.Scope.ProjectID}, request.Message)
}

// KeyPattern is what a conversation's key may look like.
var KeyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$`)

var ownID = regexp.MustCompile(`^conv_[0-9a-f]{32}$`)

// CheckKey refuses a key that does not match KeyPattern or looks like an id.
func CheckKey(key string) error {
	if !KeyPattern.MatchString(key) {
		return fmt.Errorf("%w: %q cannot be a session id: use 1 to 128 letters, digits and . _ : @ -, beginning with a letter or digit", continuo.ErrInvalid, shorten(key, 60))
	}
	if strings.HasPrefix(key, "conv_") {
		return fmt.Errorf("%w: %q: session ids that begin with conv_ are given out by the server", continuo.ErrInvalid, shorten(key, 60))
	}
	return nil
}

// TakesMessages refuses messages in the conversations of tasks and agents: they are records of work.
func TakesMessages(conversation continuo.Conversation) error {
	if conversation.Kind == continuo.KindTalk {
		return nil
	}
	return fmt.Errorf("%w: conversation %s is of the kind %s: messages go to conversations of people only; fork it to go on from there", continuo.ErrInvalid, conversation.ID, conversation.Kind)
}

// session finds the conversation of a request or begins it. It is one that takes messages.
func (e *Engine) session(ctx context.Context, request ChatRequest) (continuo.Conversation, error) {
	conversation, err := e.findOrBegin(ctx, request)
	if err == nil {
		err = TakesMessages(conversation)
	}
	return conversation, err
}

func (e *Engine) findOrBegin(ctx context.Context, request ChatRequest) (continuo.Conversation, error) {
	user, err := request.Scope.Owner(request.UserID)
	if err != nil {
		return continuo.Conversation{}, err
	}
	begin := continuo.Conversation{ProjectID: request.Scope.ProjectID, UserID: user, Key: request.SessionID, Title: titleOf(request.Message)}
	if request.SessionID == "" {
		if request.Key == "" {
			return e.Log.Create(ctx, begin)
		}
		begin.Key = onceKey(begin.Scope(), request.Key) // a retry must find the conversation that the first try began
	}
	conversation, err := e.Log.Find(ctx, request.Scope, begin.Key)
	switch {
	case err == nil:
		return e.claim(ctx, conversation, user)
	case !errors.Is(err, continuo.ErrNotFound) || ownID.MatchString(begin.Key):
		return conversation, err
	}
	if err := CheckKey(begin.Key); err != nil {
		return continuo.Conversation{}, err
	}
	conversation, err = e.Log.Create(ctx, begin)
	if !errors.Is(err, continuo.ErrExists) {
		return conversation, err
	}
	conversation, err = e.Log.Find(ctx, request.Scope, begin.Key) // somebody else began it just now, or it is out of the scope
	if errors.Is(err, continuo.ErrNotFound) {
		return conversation, fmt.Errorf("session %q: %w: choose another session_id", begin.Key, continuo.ErrOtherUser)
	}
	if err != nil {
		return conversation, err
	}
	return e.claim(ctx, conversation, user)
}

// claim makes a conversation that is nobody's a user's; ErrOtherUser where it is another user's. "" is no user.
func (e *Engine) claim(ctx context.Context, conversation continuo.Conversation, user string) (continuo.Conversation, error) {
	if user == "" || conversation.UserID == user {
		return conversation, nil
	}
	if conversation.UserID == "" {
		claimed, err := e.Log.Update(ctx, conversation.ID, continuo.ConversationChange{Claim: &user})
		if err != nil || claimed.UserID == user {
			return claimed, err
		}
	}
	return continuo.Conversation{}, fmt.Errorf("session %q: %w: choose another session_id", cmp.Or(conversation.Key, conversation.ID), continuo.ErrOtherUser)
}

// onceKey is the key of a conversation that an idempotency key begins; each user has keys of their own.
func onceKey(scope continuo.Scope, key string) string {
	if scope.UserID != "" {
		key += "\n" + scope.UserID // no key and no user id has a line end
	}
	return "once-" + hashOf(key)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// checkMessage refuses a message that says nothing.
func checkMessage(message continuo.Content) error {
	if message.IsBlank() {
		return fmt.Errorf("%w: the message says nothing that can be seen; write some text", continuo.ErrInvalid)
	}
	return nil
}

// titleOf makes a title of the first line of a message, without control characters.
func titleOf(message continuo.Content) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message.String()), "\n")
	return shorten(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line), 60)
}

func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// turnContext returns the context of a turn: the caller's, or one that only the engine's end cancels.
func (e *Engine) turnContext(ctx context.Context, detached bool) (context.Context, context.CancelCauseFunc) {
	if detached {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.closing, func() { cancel(context.Cause(e.closing)) })
	return ctx, func(cause error) { stop(); cancel(cause) }
}
