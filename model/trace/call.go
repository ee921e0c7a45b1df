package trace

import (
	"context"
	"encoding/json"
	"time"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/model"
)

// call is one request in progress.
type call struct {
	*Model
	meters *meters
	ctx    context.Context // with the span
	span   oteltrace.Span
	begin  time.Time

	started bool // the first piece was received
	over    bool // the answer ended normally
	usage   *continuo.Usage
	err     *model.Error

	text   bool // record the answer in the span
	kept   int  // approximate bytes recorded
	answer *model.Answer
}

// received handles a piece of the answer.
func (c *call) received(delta model.Delta) {
	if !c.started {
		c.started = true
		wait := time.Since(c.begin)
		c.span.SetAttributes(attribute.Float64(span.TimeToFirstChunk, wait.Seconds()))
		c.meters.firstChunk(c.ctx, wait)
	}
	if delta.Usage != nil {
		c.usage = delta.Usage
	}
	if delta.Model != "" {
		c.span.SetAttributes(attribute.String(span.ResponseModel, delta.Model))
	}
	if delta.Finish != "" {
		c.span.SetAttributes(attribute.StringSlice(span.FinishReasons, []string{delta.Finish}))
	}
	if c.text {
		c.keep(delta)
	}
}

// keep adds to the recorded answer until the span's limit is reached.
func (c *call) keep(delta model.Delta) {
	if c.kept > span.MaxText && delta.Finish == "" {
		return
	}
	c.kept += len(delta.Text) + len(delta.Reasoning)
	if delta.ToolCall != nil {
		c.kept += len(delta.ToolCall.Name) + len(delta.ToolCall.Arguments) + len(delta.ToolCall.ID)
	}
	c.answer.Add(delta)
}

func (c *call) failed(err error) {
	c.err, c.over = model.AsError(err), true
	span.Fail(c.span, string(c.err.Reason))
	c.span.SetAttributes(failure(c.err)...)
}

// end ends the span. It is called once, even if the consumer stopped or panicked.
func (c *call) end() {
	if !c.over {
		c.span.SetAttributes(attribute.Bool(span.Abandoned, true))
	}
	if c.usage != nil {
		c.span.SetAttributes(tokens(c.usage)...)
	}
	if c.text {
		c.span.SetAttributes(span.Text(span.OutputMessages, c.messages())...)
	}
	c.meters.ended(c.ctx, time.Since(c.begin), c.usage, c.err)
	c.span.End()
}

func tokens(usage *continuo.Usage) []attribute.KeyValue {
	counts := []attribute.KeyValue{
		attribute.Int(span.InputTokens, usage.InputTokens),
		attribute.Int(span.OutputTokens, usage.OutputTokens),
	}
	for _, count := range []struct {
		name  string
		count int
	}{
		{span.CacheReadTokens, usage.CachedTokens},
		{span.CacheWriteTokens, usage.CacheWriteTokens},
		{span.ReasoningTokens, usage.ReasoningTokens},
	} {
		if count.count > 0 {
			counts = append(counts, attribute.Int(count.name, count.count))
		}
	}
	return counts
}

// message is one of the conventions' gen_ai.output.messages.
type message struct {
	Role         string `json:"role"`
	Parts        []part `json:"parts"`
	FinishReason string `json:"finish_reason"`
}

type part struct {
	Type      string          `json:"type"` // text, reasoning or tool_call
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// messages returns the answer so far, as JSON.
func (c *call) messages() string {
	var failed error
	output := message{Role: "assistant", FinishReason: c.answer.Finish(), Parts: []part{}}
	if c.err != nil {
		failed, output.FinishReason = c.err, "error"
	}
	entry := c.answer.Entry(failed)
	if entry.Reasoning != nil && entry.Reasoning.Text != "" {
		output.Parts = append(output.Parts, part{Type: "reasoning", Content: entry.Reasoning.Text})
	}
	if text := entry.Content.String(); text != "" {
		output.Parts = append(output.Parts, part{Type: "text", Content: text})
	}
	for _, called := range entry.ToolCalls {
		output.Parts = append(output.Parts, part{Type: "tool_call", ID: called.ID, Name: called.Name, Arguments: arguments(called.Arguments)})
	}
	return string(rawjson.MustMarshal([]message{output}))
}

// arguments returns the arguments if they are JSON, otherwise a JSON string of them.
func arguments(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return rawjson.MustMarshal(text)
}
