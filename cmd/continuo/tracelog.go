package main

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// traceLog is a log handler that adds the ids of the current span, so that a line of the log leads to its trace. In a
// group they are in the group.
//
// The attributes of a logger are formatted when a record is written, not when the logger is made: each turn has a logger
// of its own, most write nothing, and formatting takes secrets out of every value.
type traceLog struct {
	slog.Handler
	attributes []slog.Attr
}

// Handle is part of [slog.Handler].
func (h traceLog) Handle(ctx context.Context, record slog.Record) error {
	all := slog.NewRecord(record.Time, record.Level, record.Message, record.PC)
	all.AddAttrs(h.attributes...)
	record.Attrs(func(attribute slog.Attr) bool {
		all.AddAttrs(attribute)
		return true
	})
	if under := trace.SpanContextFromContext(ctx); under.IsValid() {
		all.AddAttrs(slog.String("trace_id", under.TraceID().String()), slog.String("span_id", under.SpanID().String()))
	}
	return h.Handler.Handle(ctx, all)
}

// WithAttrs is part of [slog.Handler].
func (h traceLog) WithAttrs(attributes []slog.Attr) slog.Handler {
	return traceLog{h.Handler, slices.Concat(h.attributes, attributes)}
}

// WithGroup is part of [slog.Handler].
func (h traceLog) WithGroup(name string) slog.Handler {
	return traceLog{Handler: h.Handler.WithAttrs(h.attributes).WithGroup(name)}
}
