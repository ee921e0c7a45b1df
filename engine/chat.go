package engine

import (
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
	ProjectID string
	// SessionID is a conversation's id or key. A key that is not known yet begins a conversation; "" begins
	// one without a key.
	SessionID string
	Message   continuo.Content
	// Mode is the mode of the turn, and AgentID who answers; both stay the conversation's. "": as it is. An
	// agent without a mode is spoken to in the mode agent.
	Mode    continuo.Mode
	AgentID string
	// Model and View are names; "" means those of the agent, else the default model and the continuity view.
	Model, View string
	OnBusy      OnBusy
	// Key is the idempotency key; "" for none.
	Key string
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
	wanted, err := e.wanted(conversation, request)
	if err != nil {
		return nil, err
	}
	begin := func(ctx context.Context) (*turn.Runner, turn.Input, error) {
		now, err := e.Log.Conversation(ctx, conversation.ID)
		if err != nil {
			return nil, turn.Input{}, err
		}
		chosen, err := e.choose(request.choice(now))
		if err != nil {
			return nil, turn.Input{}, err
		}
		return e.runner(chosen), turn.Input{Message: request.Message, Mode: chosen.mode, AgentID: chosen.agent}, nil
	}
	return e.once(ctx, conversation, wanted, request.Key, func() (*Chat, error) {
		return e.carryOut(ctx, conversation.ProjectID, wanted, policy, request.Detached, begin)
	})
}

// once carries a turn out; one with a key that has begun a turn before, here or elsewhere, is that turn.
func (e *Engine) once(ctx context.Context, conversation continuo.Conversation, wanted continuo.Turn, key string, carryOut func() (*Chat, error)) (*Chat, error) {
	if key == "" {
		return carryOut()
	}
	if chat, err := e.again(ctx, conversation, wanted); !errors.Is(err, continuo.ErrNotFound) {
		return chat, err
	}
	chat, err := carryOut()
	if errors.Is(err, continuo.ErrExists) { // the same key began the turn meanwhile
		return e.again(ctx, conversation, wanted)
	}
	return chat, err
}

// wanted is the turn that a request asks for. One with a key has an id of the key's own, so that the key
// can begin no second one.
func (e *Engine) wanted(conversation continuo.Conversation, request ChatRequest) (continuo.Turn, error) {
	wanted := continuo.Turn{ID: e.Log.NewID("turn"), ConversationID: conversation.ID}
	chosen, err := e.choose(request.choice(conversation))
	if err != nil {
		return continuo.Turn{}, err
	}
	wanted.Mode, wanted.AgentID, wanted.View, wanted.Model = chosen.mode, chosen.agent, chosen.viewName, chosen.model
	e.identify(&wanted, request.Key, string(rawjson.MustMarshal(request.Message)))
	return wanted, nil
}

// choice is what a request asks for in a conversation.
func (r ChatRequest) choice(conversation continuo.Conversation) choice {
	mode, agent := stance(conversation, r.Mode, r.AgentID)
	return choice{mode: mode, agent: agent, model: r.Model, viewName: r.View}
}

// identify makes a turn's id of its key, and remembers what was asked for. Without a key it does nothing.
func (e *Engine) identify(wanted *continuo.Turn, key, asked string) {
	if key == "" {
		return
	}
	wanted.ID = "turn_" + strings.TrimPrefix(wanted.ConversationID, "conv_") + "_" + hashOf(key)[:12]
	wanted.Fingerprint = hashOf(asked)
}

// again gives the turn that a key has begun; ErrNotFound when there is none.
func (e *Engine) again(ctx context.Context, conversation continuo.Conversation, wanted continuo.Turn) (*Chat, error) {
	begun, err := e.Log.Turns().Turn(ctx, conversation.ID, wanted.ID)
	if err == nil && begun.State == continuo.TurnRunning {
		begun, err = e.keeper.Settled(ctx, begun) // one that broke off before it had begun is void then
	}
	if err != nil {
		return nil, err
	}
	if begun.State == continuo.TurnVoid {
		return nil, continuo.ErrNotFound
	}
	if begun.Fingerprint != wanted.Fingerprint {
		return nil, fmt.Errorf("%w: it began turn %s with something else", continuo.ErrKeyReused, begun.ID)
	}
	return &Chat{Conversation: conversation, TurnID: begun.ID, Events: e.counted(e.keeper.Follow(ctx, conversation.ID, begun.ID, 0))}, nil
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
	if request.Message.IsEmpty() || strings.TrimSpace(request.Message.String()) == "" && !request.Message.IsParts() {
		return "", fmt.Errorf("%w: the message is empty", continuo.ErrInvalid)
	}
	if !utf8.ValidString(request.Message.String()) {
		return "", fmt.Errorf("%w: the message is not valid UTF-8", continuo.ErrInvalid)
	}
	if e.isClosed() {
		return "", ErrClosing // before a conversation is begun for it
	}
	if request.Key == "" { // one with a key may have begun its turn already
		if err := e.quota.room(ctx, request.ProjectID); err != nil {
			return "", err
		}
	}
	chosen, err := e.choose(request.choice(continuo.Conversation{ActiveMode: continuo.ModeChat}))
	if err != nil {
		return "", err
	}
	return policy, e.runner(chosen).CheckFits(ctx, request.Message)
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
	begin := continuo.Conversation{ProjectID: request.ProjectID, Key: request.SessionID, Title: titleOf(request.Message)}
	if request.SessionID == "" {
		if request.Key == "" {
			return e.Log.Create(ctx, begin)
		}
		begin.Key = onceKey(request.Key) // a retry must find the conversation that the first try began
	}
	conversation, err := e.Log.Find(ctx, request.ProjectID, begin.Key)
	if !errors.Is(err, continuo.ErrNotFound) || ownID.MatchString(begin.Key) {
		return conversation, err
	}
	if err := CheckKey(begin.Key); err != nil {
		return continuo.Conversation{}, err
	}
	conversation, err = e.Log.Create(ctx, begin)
	if errors.Is(err, continuo.ErrExists) { // somebody else began it just now
		return e.Log.Find(ctx, request.ProjectID, begin.Key)
	}
	return conversation, err
}

// onceKey is the key of a conversation that an idempotency key begins.
func onceKey(key string) string { return "once-" + hashOf(key) }

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
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
