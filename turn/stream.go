package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/tool"
)

// stream sends a request and makes an entry of what comes back, whole or not.
func (c *cycle) stream(from model.Model, body []byte, round *continuo.Round) continuo.Entry {
	ctx := c.ctx
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
		c.show(delta)
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

// maxAnswerBytes bounds one answer, so that a stream without an end cannot fill the memory.
const maxAnswerBytes = 16 << 20

func sizeOf(delta model.Delta) int {
	size := len(delta.Text) + len(delta.Reasoning) + len(delta.Vendor) + len(delta.Signature)
	if call := delta.ToolCall; call != nil {
		size += 64 + len(call.ID) + len(call.Name) + len(call.Arguments) + len(call.Extra)
	}
	return size
}

// show passes on what a person can read of a delta.
func (c *cycle) show(delta model.Delta) {
	if delta.Reasoning != "" {
		c.emit(Event{Kind: ReasoningDelta, Text: delta.Reasoning})
	}
	if delta.Text != "" {
		c.emit(Event{Kind: TextDelta, Text: delta.Text})
	}
}

// causeOf says why a context ended, in the words of the log.
func causeOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	failure := &model.Error{Reason: continuo.ReasonCancelled, Message: "the turn was cancelled"}
	switch {
	case errors.Is(cause, errTimeout), errors.Is(cause, context.DeadlineExceeded):
		failure = &model.Error{Reason: continuo.ReasonTimeout, Message: cause.Error(), Retryable: true}
	case errors.Is(cause, ErrInterrupted):
		failure = &model.Error{Reason: continuo.ReasonInterrupted, Message: "the turn was interrupted", Retryable: true}
	}
	return failure
}

// maxSideBySide bounds how many calls of one answer run at once.
const maxSideBySide = 16

// toolRun carries out one call, or says why it is not carried out.
type toolRun func(call continuo.ToolCall, conversation continuo.Conversation) tool.Result

// answerCalls runs an answer's calls side by side and appends their results in call order.
func (c *cycle) answerCalls(answer *continuo.Entry, run toolRun) error {
	if len(answer.ToolCalls) == 0 {
		return nil
	}
	conversation, err := c.Log.Conversation(context.WithoutCancel(c.ctx), c.in.ConversationID)
	if err != nil {
		return err
	}
	results := make([]continuo.Entry, len(answer.ToolCalls))
	var running sync.WaitGroup
	places := make(chan struct{}, maxSideBySide)
	for i, call := range answer.ToolCalls {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			results[i] = c.resultOf(call, conversation, run)
		})
	}
	running.Wait()
	for _, result := range results {
		if _, err := c.append(result); err != nil {
			return err
		}
	}
	return nil
}

func (c *cycle) resultOf(call continuo.ToolCall, conversation continuo.Conversation, run toolRun) continuo.Entry {
	begin := time.Now()
	result := run(call, conversation)
	if len(result.Content) > maxResultBytes {
		result = tool.Failure("the tool gave %d bytes, more than the %d that are kept of one result: ask for less", len(result.Content), maxResultBytes)
	}
	result.Content = strings.ToValidUTF8(result.Content, "\uFFFD")
	entry := continuo.Entry{
		Role: continuo.Tool, ToolCallID: call.ID, Content: continuo.Text(result.Content), Outcome: strings.ToValidUTF8(result.Outcome, "\uFFFD"),
		ToolName: call.Name, DurationMS: time.Since(begin).Milliseconds(), PartType: "tool_result",
	}
	if found, ok := c.find(call.Name); ok {
		entry.ToolName = found.Spec().Name
	}
	if result.Failed {
		entry.PartType = "tool_error"
	}
	return entry
}

// runTool calls the tool that a call names; a program error in it becomes a result like any failure.
func (c *cycle) runTool(call continuo.ToolCall, conversation continuo.Conversation) (result tool.Result) {
	found, ok := c.find(call.Name)
	if !ok {
		return tool.Failure("there is no tool %s; offered were %v", call.Name, names(c.Tools))
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.limits.Tool)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			result = tool.Failure("the tool %s failed inside: %v", call.Name, cause)
		}
	}()
	return found.Run(ctx, tool.Call{Conversation: conversation, ID: call.ID, Arguments: call.Arguments})
}

// find returns the tool that a call names as the rendering named it to the model.
func (c *cycle) find(name string) (tool.Tool, bool) {
	for _, candidate := range c.Tools {
		if render.ToolName(candidate.Spec().Name) == name {
			return candidate, true
		}
	}
	return nil, false
}

func names(tools tool.Set) []string {
	var names []string
	for _, spec := range tools.Specs() {
		names = append(names, render.ToolName(spec.Name))
	}
	return names
}

// notRun answers a call of an answer that broke off.
func notRun(continuo.ToolCall, continuo.Conversation) tool.Result {
	return tool.Failure("not run: the answer that asked for it broke off")
}

// overLimit answers a call that came after the last round.
func overLimit(continuo.ToolCall, continuo.Conversation) tool.Result {
	return tool.Failure("not run: the turn has reached its limit of rounds")
}

// maxResultBytes bounds one tool result; it leaves room for the rest of an entry within the log's limit.
const maxResultBytes = 24 << 20

// hashOf makes a short name of a text, the same for every try.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}
