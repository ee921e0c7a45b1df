package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// stream sends a request and returns its answer as an entry, complete or not.
func (c *toolLoop) stream(from model.Model, body []byte, round *continuo.Round) continuo.Entry {
	ctx := c.ctx
	if c.Forward != nil {
		ctx = model.WithForwarding(ctx, c.Forward.Request)
	} else if c.Options != nil && c.Options.Headers != nil {
		ctx = model.WithClientHeaders(ctx, c.Options.Headers)
	}
	if c.Answered != nil {
		ctx = model.WithAnswered(ctx, c.Answered)
	}
	begin, begun := time.Now(), false
	entry := Ask(untilDeadline{ctx, c.clock.deadline()}, from, body, round, func(delta model.Delta) {
		if !begun {
			begun = true
			c.journal.measure(StageFirst, time.Since(begin))
		}
		c.show(delta)
	})
	c.journal.measure(StageModel, time.Since(begin))
	return entry
}

// Ask sends a request's body to a model and returns its answer as an entry, complete or not, with the round, to which it adds
// latency, finish reason and usage. Show is called with each piece of the answer. Ask appends nothing and charges nobody.
func Ask(ctx context.Context, from model.Model, body []byte, round *continuo.Round, show func(delta model.Delta)) continuo.Entry {
	begin := time.Now()
	answer := model.Answer{Provider: from.Info().Provider}
	var failure error
	received := 0
	for delta, err := range from.Stream(ctx, body) {
		if err != nil {
			failure = err
			break
		}
		if round.FirstDeltaMS == 0 {
			round.FirstDeltaMS = max(time.Since(begin).Milliseconds(), 1)
		}
		answer.Add(delta)
		show(delta)
		if ctx.Err() != nil {
			failure = ctx.Err()
			break
		}
		if received += sizeOf(delta); received > maxAnswerBytes {
			failure = &model.Error{Reason: continuo.ReasonUpstream, Message: fmt.Sprintf("the answer is longer than %d bytes", maxAnswerBytes)}
			break
		}
	}
	if failure != nil && ctx.Err() != nil {
		failure = causeOf(ctx)
	}
	round.LatencyMS = time.Since(begin).Milliseconds()
	round.FinishReason, round.Usage = answer.Finish(), answer.Usage()
	entry := answer.Entry(failure)
	entry.Round = round
	return entry
}

// maxAnswerBytes bounds one answer, so that an endless stream cannot exhaust memory.
const maxAnswerBytes = 16 << 20

// wirePerText is about how many bytes of a stream there are for a byte of its text.
const wirePerText = 16

func sizeOf(delta model.Delta) int {
	return len(delta.Text) + len(delta.Wire)/wirePerText + len(delta.Reasoning) + len(delta.Vendor) + len(delta.Item) + len(delta.Signature) + sizeOfCall(delta.ToolCall)
}

func sizeOfCall(call *model.ToolCallDelta) int {
	if call == nil {
		return 0
	}
	return 64 + len(call.ID) + len(call.Name) + len(call.Arguments) + len(call.Extra)
}

// show emits a delta as events: for readers, and for recovery to rebuild the answer if the program is killed.
func (c *toolLoop) show(delta model.Delta) {
	wire := delta.Wire
	emit := func(e Event) {
		e.Wire, wire = wire, ""
		if delta.More || c.Forward != nil && c.Forward.Whole {
			c.journal.emitQuiet(e) // more follows at once
			return
		}
		c.journal.emit(e)
	}
	if delta.Reasoning != "" || delta.Signature != "" {
		emit(Event{Kind: ReasoningDelta, Text: strings.ToValidUTF8(delta.Reasoning, "\uFFFD"), Signature: strings.ToValidUTF8(delta.Signature, "\uFFFD")})
	}
	if delta.Text != "" {
		emit(Event{Kind: TextDelta, Text: strings.ToValidUTF8(delta.Text, "\uFFFD")})
	}
	if delta.ToolCall != nil {
		piece := *delta.ToolCall
		if !json.Valid(piece.Extra) { // an event cannot encode it; the rules of the log will refuse the whole answer
			piece.Extra = nil
		}
		if !utf8.Valid(piece.Extra) { // not every store accepts it
			piece.Extra = bytes.ToValidUTF8(piece.Extra, []byte("\uFFFD"))
		}
		emit(Event{Kind: CallDelta, Delta: &piece})
	}
	if json.Valid(delta.Item) && utf8.Valid(delta.Item) {
		emit(Event{Kind: OwnItem, Item: delta.Item})
	}
	if wire != "" {
		emit(Event{Kind: Wired})
	}
}

// causeOf returns why a context ended, as an error that the log records.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	failure := &model.Error{Reason: continuo.ReasonCancelled, Message: "the turn was cancelled"}
	switch {
	case errors.As(cause, new(*timeoutError)), errors.Is(cause, context.DeadlineExceeded):
		failure = &model.Error{Reason: continuo.ReasonTimeout, Message: cause.Error(), Retryable: true}
	case errors.Is(cause, ErrInterrupted), errors.Is(cause, continuo.ErrLeaseLost):
		failure = &model.Error{Reason: continuo.ReasonInterrupted, Message: "the turn was interrupted", Retryable: true}
	}
	return failure
}
