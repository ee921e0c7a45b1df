package main

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// traceLog is a log handler that adds the ids of the current span, so that a line of the log leads to its trace. In a
// group they are in the group.
type traceLog struct{ slog.Handler }

// Handle is part of [slog.Handler].
func (h traceLog) Handle(ctx context.Context, record slog.Record) error {
	if under := trace.SpanContextFromContext(ctx); under.IsValid() {
		record = record.Clone()
		record.AddAttrs(slog.String("trace_id", under.TraceID().String()), slog.String("span_id", under.SpanID().String()))
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs is part of [slog.Handler].
func (h traceLog) WithAttrs(attributes []slog.Attr) slog.Handler {
	return traceLog{h.Handler.WithAttrs(attributes)}
}

// WithGroup is part of [slog.Handler].
func (h traceLog) WithGroup(name string) slog.Handler { return traceLog{h.Handler.WithGroup(name)} }
