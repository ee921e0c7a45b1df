package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// ChatRequest begins a turn.
type ChatRequest struct {
	ProjectID string
	// SessionID is a conversation's id or key. A key that is not known yet begins a conversation; "" begins
	// one without a key.
	SessionID string
	Message   continuo.Content
	// Mode is the mode of the turn; it stays the conversation's. "": as it is.
	Mode continuo.Mode
	// Model and View are names; "" means the default model and the continuity view.
	Model, View string
	OnBusy      OnBusy
	// Key is the idempotency key; "" for none.
	Key string
	// Detached lets the turn go on when the caller's context ends.
	Detached bool
}

// Chat is a turn under way.
type Chat struct {
	Conversation continuo.Conversation
	// Events yields the turn's events. It must be ranged over once; leaving early stops the turn unless it
	// is detached.
	Events iter.Seq2[turn.Event, error]
}

// Chat checks a request, finds or begins its conversation, waits until the conversation is free, and
// begins the turn.
func (e *Engine) Chat(ctx context.Context, request ChatRequest) (*Chat, error) {
	runner, policy, err := e.prepare(request)
	if err != nil {
		return nil, err
	}
	conversation, err := e.session(ctx, request)
	if err != nil {
		return nil, err
	}
	if err := e.admit(); err != nil {
		return nil, err
	}
	turnCtx, cancel := e.turnContext(ctx, request.Detached)
	leave, err := e.lanes.enter(turnCtx, conversation.ID, policy, e.options.Wait, cancel)
	if err != nil {
		cancel(nil)
		e.turns.Done()
		if errors.Is(err, turn.ErrInterrupted) {
			return nil, ErrClosing
		}
		return nil, err
	}
	done := func() { leave(); cancel(nil); e.turns.Done() }
	if conversation, err = e.switchMode(turnCtx, conversation.ID, request); err == nil {
		runner, err = e.withMode(runner, conversation.ActiveMode)
	}
	if err != nil {
		done()
		return nil, err
	}
	input := turn.Input{ConversationID: conversation.ID, Message: request.Message, Key: request.Key, Mode: conversation.ActiveMode}
	events := e.start(turnCtx, runner, input, done)
	return &Chat{Conversation: conversation, Events: e.follow(events, request.Detached, cancel)}, nil
}

// switchMode gives the conversation the mode that a request asks for, unless the request is a retry of
// one that was carried out before.
func (e *Engine) switchMode(ctx context.Context, id string, request ChatRequest) (continuo.Conversation, error) {
	conversation, err := e.Log.Conversation(ctx, id)
	if err != nil || request.Mode == "" || request.Mode == conversation.ActiveMode {
		return conversation, err
	}
	if request.Key != "" {
		if used, err := e.Log.KeyUsed(ctx, id, request.Key); used || err != nil {
			return conversation, err
		}
	}
	return e.Log.Update(ctx, id, continuo.ConversationChange{ActiveMode: &request.Mode})
}

// prepare checks everything that can be checked before a conversation is touched.
func (e *Engine) prepare(request ChatRequest) (*turn.Runner, OnBusy, error) {
	policy, err := ParseOnBusy(string(request.OnBusy))
	if err != nil {
		return nil, "", err
	}
	switch request.Mode {
	case "", continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun:
	default:
		return nil, "", fmt.Errorf("mode %q: %w: known are chat, agent, run", request.Mode, continuo.ErrInvalid)
	}
	upstream, err := e.upstream(request.Model)
	if err != nil {
		return nil, "", err
	}
	name := request.View
	if name == "" {
		name = window.Continuity
	}
	view, err := e.options.Views.View(name)
	if err != nil {
		return nil, "", err
	}
	if request.Message.IsEmpty() || strings.TrimSpace(request.Message.String()) == "" && !request.Message.IsParts() {
		return nil, "", fmt.Errorf("%w: the message is empty", continuo.ErrInvalid)
	}
	if !utf8.ValidString(request.Message.String()) {
		return nil, "", fmt.Errorf("%w: the message is not valid UTF-8", continuo.ErrInvalid)
	}
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return nil, "", ErrClosing // before a conversation is begun for it
	}
	runner, err := e.runner(upstream, view, continuo.ModeChat)
	if err != nil {
		return nil, "", err
	}
	return runner, policy, runner.CheckFits(request.Message)
}

// withMode gives a runner the system messages of a mode.
func (e *Engine) withMode(runner *turn.Runner, mode continuo.Mode) (*turn.Runner, error) {
	system, err := e.options.Prompts.System(mode, "")
	if err != nil {
		return nil, err
	}
	with := *runner
	with.System = system
	return &with, nil
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

// session finds the conversation of a request or begins it.
func (e *Engine) session(ctx context.Context, request ChatRequest) (continuo.Conversation, error) {
	begin := continuo.Conversation{ProjectID: request.ProjectID, Key: request.SessionID, Title: titleOf(request.Message)}
	if request.SessionID == "" {
		if request.Key == "" {
			return e.Log.Create(ctx, begin)
		}
		begin.Key = "once-" + hashOf(request.Key) // a retry must find the conversation that the first try began
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

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// titleOf makes a title of the first line of a message.
func titleOf(message continuo.Content) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message.String()), "\n")
	return shorten(line, 60)
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

// eventOrError is one thing that a turn yields.
type eventOrError struct {
	event turn.Event
	err   error
}

// start runs a turn in a goroutine of its own, so that a caller who leaves does not stop it, and calls
// done at its end. The channel closes after the last event; nobody has to read it.
func (e *Engine) start(ctx context.Context, runner *turn.Runner, input turn.Input, done func()) *feed {
	f := newFeed()
	begin := time.Now()
	go func() {
		defer f.close()
		defer done()
		defer func() {
			if cause := recover(); cause != nil {
				err := fmt.Errorf("the turn failed inside: %v", cause)
				e.options.Logger.ErrorContext(ctx, "turn_panicked", "conversation_id", input.ConversationID, "error", err.Error(), "stack", string(debug.Stack()))
				f.put(eventOrError{err: err})
			}
		}()
		for event, err := range runner.Run(ctx, input) {
			e.observe(ctx, input, event, err, begin)
			f.put(eventOrError{event, err})
		}
	}()
	return f
}

// follow yields a turn's events to one reader.
func (e *Engine) follow(f *feed, detached bool, cancel context.CancelCauseFunc) iter.Seq2[turn.Event, error] {
	return func(yield func(turn.Event, error) bool) {
		for next := range f.all() {
			if !yield(next.event, next.err) {
				f.leave()
				if !detached {
					cancel(nil)
				}
				return
			}
		}
	}
}

// observe logs and counts what a turn does.
func (e *Engine) observe(ctx context.Context, input turn.Input, event turn.Event, err error, begin time.Time) {
	logger := e.options.Logger.With("conversation_id", input.ConversationID, "turn_id", event.TurnID)
	switch {
	case err != nil:
		e.metrics.turnEnded("error", begin, continuo.Usage{})
		logger.ErrorContext(ctx, "turn_failed", "error", err.Error())
	case event.Kind == turn.Planned:
		e.metrics.planned(event.Plan)
		logContext(ctx, logger, event.Plan)
	case event.Kind == turn.FellBack:
		failed := event.Attempt
		e.metrics.fellBack(failed)
		logger.WarnContext(ctx, "model_fell_back", "provider", failed.Round.Provider, "model", failed.Round.Model, "reason", failed.Error.Reason, "error", failed.Error.Message)
	case event.Kind == turn.Answered:
		e.metrics.answered(event.Entry)
	case event.Kind == turn.Finished:
		e.metrics.turnEnded("finished", begin, event.Usage)
		attributes := []any{"duration_ms", time.Since(begin).Milliseconds(), "input_tokens", event.Usage.InputTokens, "output_tokens", event.Usage.OutputTokens}
		if e.options.LogText {
			attributes = append(attributes, "message", input.Message.String(), "response", event.Entry.Content.String())
		}
		logger.InfoContext(ctx, "turn_finished", attributes...)
	case event.Kind == turn.Failed:
		e.metrics.turnEnded(string(event.Entry.Error.Reason), begin, event.Usage)
		logger.WarnContext(ctx, "turn_failed", "reason", event.Entry.Error.Reason, "error", event.Entry.Error.Message, "provider_status", event.Entry.Error.ProviderStatus)
	}
}

// logContext logs what a request shows, in the words of the continuity service.
func logContext(ctx context.Context, logger *slog.Logger, plan *continuo.Plan) {
	logger.InfoContext(ctx, "conversation_context_loaded",
		"view", plan.View,
		"total_messages_in_db", plan.Totals.Entries,
		"messages_loaded", plan.Totals.Kept,
		"messages_truncated", plan.Totals.Dropped,
		"estimated_tokens", plan.Totals.Tokens,
		"epoch", plan.Window.Epoch,
		"moved", plan.Moved,
	)
}
