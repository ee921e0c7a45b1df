// Package turn carries out one turn: append the user's entry, build the request, stream the model,
// append, run tools, append, and again until the model gives its final answer.
//
// The log is the only copy of the conversation: what the model is sent is built from what was appended,
// so that the newest input can be neither missing nor doubled. Each answer carries the round that it
// was made by. A call of the model that fails leaves an assistant entry with the partial text and an
// LLM_ERROR, and every call of a tool gets a result, whatever happens.
//
// Pitfalls: a turn assumes that it is the only one of its conversation; the caller sees to that.
// Cancelling the context ends the turn with an entry that says so, and still appends it.
package turn

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/window"
)

// ErrInterrupted is the cause with which a context is cancelled when the program ends or another turn
// takes over. Any other cancellation is the user's.
var ErrInterrupted = errors.New("interrupted")

// Runner runs turns. It is safe for concurrent use.
type Runner struct {
	Log *continuo.Log
	// Model is asked once a round: retries, and limits on the time of one request, are its own.
	Model  model.Model
	Tools  tool.Set
	View   window.View
	System []string // the system messages, in order
	Limits Limits
	// MaxOutputTokens and Temperature go to the model; zero and nil leave them to it.
	MaxOutputTokens int
	Temperature     *float64
	// Fallback is asked in a round whose model failed before it showed anything. Default none.
	Fallback *Upstream
}

// Upstream is a model and what goes to it.
type Upstream struct {
	Model           model.Model
	MaxOutputTokens int      // 0 leaves it to the model
	Temperature     *float64 // nil leaves it to the model
}

// own is the runner's model as an upstream.
func (r *Runner) own() Upstream {
	return Upstream{Model: r.Model, MaxOutputTokens: r.MaxOutputTokens, Temperature: r.Temperature}
}

// Limits bound a turn.
type Limits struct {
	Rounds int           // model requests; the last one is offered no tools. Default 25
	Turn   time.Duration // the whole turn. Default 10 min
	Tool   time.Duration // one call of a tool. Default 1 min
}

func (l Limits) orDefaults() Limits {
	if l.Rounds == 0 {
		l.Rounds = 25
	}
	if l.Turn == 0 {
		l.Turn = 10 * time.Minute
	}
	if l.Tool == 0 {
		l.Tool = time.Minute
	}
	return l
}

// Input is what begins a turn.
type Input struct {
	ConversationID string
	Message        continuo.Content
	// Key makes the turn happen once: a second turn with the same key and message gives the answer of the
	// first, and goes on with it if it broke off before an answer was recorded. Default none.
	Key     string
	Mode    continuo.Mode
	AgentID string
}

// Run carries out a turn. It yields an error, last, only when the turn could not be recorded or built;
// a model that fails gives a Failed event. Stopping early cancels the turn.
func (r *Runner) Run(ctx context.Context, in Input) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		limits := r.Limits.orDefaults()
		ctx, cancel := context.WithTimeoutCause(ctx, limits.Turn, errTimeout)
		defer cancel()
		c := &cycle{Runner: r, limits: limits, in: in, turnID: r.Log.NewID("turn"), ctx: ctx, stop: cancel, yield: yield}
		if err := c.run(); err != nil && !c.stopped {
			yield(Event{TurnID: c.turnID}, err)
		}
	}
}

var errTimeout = errors.New("the turn took longer than the limit on a whole turn")

// cycle is one turn under way.
type cycle struct {
	*Runner
	limits Limits
	in     Input
	turnID string
	usage  continuo.Usage

	ctx     context.Context
	stop    context.CancelFunc
	yield   func(Event, error) bool
	stopped bool // the consumer wants no more events
}

// emit hands an event to the consumer; a consumer that stops cancels the turn.
func (c *cycle) emit(event Event) {
	if c.stopped {
		return
	}
	event.TurnID = c.turnID
	if !c.yield(event, nil) {
		c.stopped = true
		c.stop()
	}
}

func (c *cycle) run() error {
	done, err := c.begin()
	if err != nil || done {
		return err
	}
	for round := 1; ; round++ {
		answer, err := c.round(round == c.limits.Rounds)
		switch {
		case err != nil && c.ctx.Err() != nil:
			return c.end(model.AsError(causeOf(c.ctx)))
		case err != nil:
			return err
		case answer.Error != nil:
			if err := c.answerCalls(answer, notRun); err != nil {
				return err
			}
			c.emit(Event{Kind: Failed, Entry: answer, Usage: c.usage})
			return nil
		case len(answer.ToolCalls) == 0:
			c.emit(Event{Kind: Finished, Entry: answer, Usage: c.usage})
			return nil
		}
		run := c.runTool
		if round == c.limits.Rounds {
			run = overLimit
		}
		if err := c.answerCalls(answer, run); err != nil {
			return err
		}
		if round == c.limits.Rounds {
			return c.giveUp()
		}
	}
}

// begin appends the user's entry. It reports true when the turn was over before: its key was used.
func (c *cycle) begin() (over bool, err error) {
	if err := c.CheckFits(c.in.Message); err != nil {
		return false, err
	}
	if err := c.closeOpenCalls(); err != nil {
		return false, err
	}
	entry := continuo.Entry{Role: continuo.User, Content: c.in.Message, Mode: c.in.Mode, AgentID: c.in.AgentID}
	keyed := continuo.AppendOptions{Key: c.in.Key}
	if c.in.Key != "" {
		keyed.Identity = hashOf(string(rawjson.MustMarshal(c.in.Message))) // whatever the mode is by now
	}
	if c.in.Key == "" {
		entry.TurnID = c.turnID
	} else {
		entry.TurnID = "turn_" + c.in.ConversationID[len("conv_"):] + "_" + hashOf(c.in.Key)[:12]
		c.turnID = entry.TurnID
	}
	stored, err := c.Log.Append(c.ctx, c.in.ConversationID, []continuo.Entry{entry}, keyed)
	if err != nil {
		return false, err
	}
	c.emit(Event{Kind: Started, Entry: &stored[0]})
	if c.in.Key == "" {
		return false, nil
	}
	return c.replay(stored[0].Seq)
}

// closeOpenCalls answers calls that an earlier turn left open because its program ended: without their
// results nothing could ever follow them.
func (c *cycle) closeOpenCalls() error {
	conversation, err := c.Log.Conversation(c.ctx, c.in.ConversationID)
	if err != nil {
		return err
	}
	group, err := c.Log.OpenGroup(c.ctx, conversation)
	if err != nil || len(group.Open) == 0 {
		return err
	}
	results := make([]continuo.Entry, len(group.Open))
	for i, id := range group.Open {
		results[i] = continuo.Entry{
			Role: continuo.Tool, ToolCallID: id, PartType: "tool_error", TurnID: c.turnID, Hidden: group.Hidden,
			Content: continuo.Text("error: interrupted: the program ended before this call had a result"),
		}
	}
	_, err = c.Log.Append(c.ctx, c.in.ConversationID, results, continuo.AppendOptions{ExpectSeq: conversation.LastSeq + 1})
	if err != nil {
		return fmt.Errorf("close the calls of an earlier turn: %w", err)
	}
	return nil
}

// CheckFits refuses, with a *continuo.OverflowError, a message that no request could hold.
func (r *Runner) CheckFits(message continuo.Content) error {
	return window.CheckFits(r.View, windowInput(0, r.envelope(r.own(), false), r.Model.Info()), message)
}

// replay gives the end of a turn that ran before, if it has one.
func (c *cycle) replay(after int64) (over bool, err error) {
	conversation, err := c.Log.Conversation(c.ctx, c.in.ConversationID)
	if err != nil {
		return false, err
	}
	for entry, err := range c.Log.Read(c.ctx, conversation, continuo.Range{From: after + 1}) {
		if err != nil {
			return false, err
		}
		if entry.TurnID != c.turnID && entry.Role == continuo.User {
			return false, fmt.Errorf("%w: the turn of the key %q broke off and the conversation has gone on since: send the message with another key", continuo.ErrKeyReused, c.in.Key)
		}
		if entry.TurnID != c.turnID || entry.Role != continuo.Assistant {
			continue
		}
		c.count(entry.Round)
		switch {
		case entry.Error != nil:
			c.emit(Event{Kind: Failed, Entry: &entry, Usage: c.usage})
			return true, nil
		case !entry.HasCalls():
			c.emit(Event{Kind: Finished, Entry: &entry, Usage: c.usage})
			return true, nil
		}
	}
	return false, nil
}

// append adds an answer to the log. It must get there even when the turn was cancelled.
func (c *cycle) append(answer continuo.Entry) (*continuo.Entry, error) {
	answer.Mode, answer.AgentID, answer.TurnID = c.in.Mode, c.in.AgentID, c.turnID
	stored, err := c.Log.Append(context.WithoutCancel(c.ctx), c.in.ConversationID, []continuo.Entry{answer}, continuo.AppendOptions{})
	if err != nil {
		return nil, fmt.Errorf("keep the answer: %w", err)
	}
	kind := Answered
	if stored[0].Role == continuo.Tool {
		kind = ToolDone
	}
	c.emit(Event{Kind: kind, Entry: &stored[0]})
	return &stored[0], nil
}

// giveUp ends a turn whose model asked for tools although its last request offered none.
func (c *cycle) giveUp() error {
	return c.end(&model.Error{
		Reason:  continuo.ReasonUpstream,
		Message: fmt.Sprintf("the model still asked for tools after %d rounds, the limit of a turn", c.limits.Rounds),
	})
}

// end closes a turn with an entry that says why there is no answer.
func (c *cycle) end(failure *model.Error) error {
	answer, err := c.append(continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), Error: &continuo.TurnError{
		Code: continuo.LLMError, Reason: failure.Reason, Message: failure.Message, Retryable: failure.Retryable,
	}})
	if err != nil {
		return err
	}
	c.emit(Event{Kind: Failed, Entry: answer, Usage: c.usage})
	return nil
}

// count adds a round's usage to the turn's.
func (c *cycle) count(round *continuo.Round) {
	if round == nil || round.Usage == nil {
		return
	}
	c.usage.InputTokens += round.Usage.InputTokens
	c.usage.OutputTokens += round.Usage.OutputTokens
	c.usage.CachedTokens += round.Usage.CachedTokens
	c.usage.CacheWriteTokens += round.Usage.CacheWriteTokens
	c.usage.ReasoningTokens += round.Usage.ReasoningTokens
}
