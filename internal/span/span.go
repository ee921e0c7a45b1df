// Package span has what the rooms that trace share: the names of attributes and metrics, and the ids that
// every span below a turn carries.
//
// The ids travel in the context under a key of this package, not as OpenTelemetry's baggage: baggage is
// made to be sent along with requests, and nothing of a conversation may reach an upstream that way.
//
// Pitfalls: what stands in a span leaves the machine. Text that people or models wrote is put there only
// by an option, and then through [Text], which bounds it.
package span

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope names who makes the spans and metrics, for a provider's Tracer and Meter.
const Scope = "github.com/continuo-log/continuo"

type carried struct{}

// With returns a context under which every span that Start begins carries the attributes, besides those
// of ctx.
func With(ctx context.Context, attributes ...attribute.KeyValue) context.Context {
	return context.WithValue(ctx, carried{}, slices.Concat(Carried(ctx), attributes))
}

// Carried returns what With has put into a context. It must not be changed.
func Carried(ctx context.Context) []attribute.KeyValue {
	attributes, _ := ctx.Value(carried{}).([]attribute.KeyValue)
	return attributes
}

// Value returns the value of a string attribute that the context carries, "" when it carries none.
func Value(ctx context.Context, name string) string {
	for _, one := range Carried(ctx) {
		if string(one.Key) == name {
			return one.Value.AsString()
		}
	}
	return ""
}

// Start begins a span, with what the context carries. The caller ends it.
func Start(ctx context.Context, tracer trace.Tracer, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(Carried(ctx)...), trace.WithAttributes(attributes...))
}

// StartTurn begins the span of a turn, under which all of its other spans stand. They carry the ids too.
func StartTurn(ctx context.Context, tracer trace.Tracer, conversationID, turnID string) (context.Context, trace.Span) {
	return Start(With(ctx, attribute.String(ConversationID, conversationID), attribute.String(TurnID, turnID)), tracer, "turn", trace.SpanKindInternal)
}

// SetMode names a turn's span by its mode, once that is known.
func SetMode(turn trace.Span, mode string) {
	turn.SetName("turn " + mode)
	turn.SetAttributes(attribute.String(Mode, mode))
}

// Fail marks a span as failed. The kind is a word out of a small set; messages of errors are not taken,
// since they may repeat what a person wrote.
func Fail(failed trace.Span, kind string) {
	failed.SetAttributes(attribute.String(ErrorType, kind))
	failed.SetStatus(codes.Error, kind)
}

// MaxText is how many bytes of one text a span holds at most.
const MaxText = 32 << 10

// Text is an attribute of text that somebody wrote, cut to MaxText.
func Text(name, text string) []attribute.KeyValue {
	if len(text) <= MaxText {
		return []attribute.KeyValue{attribute.String(name, strings.ToValidUTF8(text, "\uFFFD"))}
	}
	return []attribute.KeyValue{attribute.String(name, strings.ToValidUTF8(text[:MaxText], "")), attribute.Bool(TextCut, true)}
}
