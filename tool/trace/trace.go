// Package trace reports each call of a tool to OpenTelemetry as a span, following the GenAI conventions.
//
// Pitfalls: a span holds neither arguments nor results unless Options.MessageText is set, and then only up to
// a limit; a failed call has an error type of one word. A wrapped tool has only the methods of package tool's
// interfaces; Unwrap returns the inner tool.
package trace

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/tool"
)

// Options says where to report.
type Options struct {
	// Tracer makes the spans. Default: none are made.
	Tracer oteltrace.Tracer
	// MessageText puts arguments and results into the span, up to span.MaxText bytes each. Default false.
	MessageText bool
}

// Tool is a tool whose calls are traced. It is safe for concurrent use.
type Tool struct {
	tool.Tool
	options Options
}

// New wraps a tool.
func New(inner tool.Tool, options Options) Tool {
	if options.Tracer == nil {
		options.Tracer = noop.Tracer{}
	}
	return Tool{Tool: inner, options: options}
}

// Timeout is part of [tool.Timed].
func (t Tool) Timeout() time.Duration {
	if timed, ok := t.Tool.(tool.Timed); ok {
		return timed.Timeout()
	}
	return 0
}

// Repeatable is part of [tool.Repeatable].
func (t Tool) Repeatable() bool { return tool.IsRepeatable(t.Tool) }

// Useful is part of [tool.Situational].
func (t Tool) Useful(s tool.Situation) bool { return tool.IsUseful(t.Tool, s) }

// Source is a source whose tools are traced.
type Source struct {
	tool.Source
	options Options
}

// NewSource wraps a source, such as a [tool.Set].
func NewSource(inner tool.Source, options Options) Source {
	return Source{Source: inner, options: options}
}

// Tools is part of [tool.Source].
func (s Source) Tools(ctx context.Context) tool.Set {
	set := s.Source.Tools(ctx)
	traced := make(tool.Set, len(set))
	for i, inner := range set {
		traced[i] = New(inner, s.options)
	}
	return traced
}

// Unwrap returns the inner tool.
func (t Tool) Unwrap() tool.Tool { return t.Tool }

// executeTool is the operation's name in the conventions.
const executeTool = "execute_tool"

// Run executes a call under a span; see [tool.Tool].
func (t Tool) Run(ctx context.Context, call tool.Call) (result tool.Result) {
	name := t.Spec().Name
	ctx, under := span.Start(ctx, t.options.Tracer, executeTool+" "+name, oteltrace.SpanKindInternal,
		attribute.String(span.OperationName, executeTool),
		attribute.String(span.ToolName, name),
		attribute.String(span.ToolType, "function"),
		attribute.String(span.ToolCallID, call.ID),
	)
	text := t.options.MessageText && under.IsRecording()
	if text {
		under.SetAttributes(span.Text(span.ToolCallArguments, call.Arguments)...)
	}
	returned := false
	defer func() {
		if failure := outcome(ctx, result, returned); failure != "" {
			span.Fail(under, failure)
		}
		under.SetAttributes(attribute.Int(span.ResultBytes, len(result.Content)))
		if text {
			under.SetAttributes(span.Text(span.ToolCallResult, result.Content)...)
		}
		under.End()
	}()
	result = t.Tool.Run(ctx, call)
	returned = true
	return result
}

// outcome returns the error type, "" for success.
func outcome(ctx context.Context, result tool.Result, returned bool) string {
	switch {
	case !returned:
		return "panic"
	case !result.Failed:
		return ""
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return "timeout"
	case ctx.Err() != nil:
		return "cancelled"
	}
	return "tool_error"
}
