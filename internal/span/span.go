// Package span has what the tracing packages share: the names of attributes and metrics, and the ids that every span
// below a turn has.
//
// The ids are in the context under a key of this package, not in OpenTelemetry's baggage: baggage is made to be sent
// along with requests, and no data of a conversation may reach an upstream that way.
//
// Pitfalls: a span's data leaves the machine. Text that people or models wrote is added only by an option, and then
// through [Text], which bounds it.
package span

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the instrumentation scope of the spans and metrics, for a provider's Tracer and Meter.
const Scope = "github.com/continuo-log/continuo"

type carried struct{}

// With returns a context under which every span that Start begins has the attributes, besides those of ctx.
func With(ctx context.Context, attributes ...attribute.KeyValue) context.Context {
	return context.WithValue(ctx, carried{}, slices.Concat(Carried(ctx), attributes))
}

// Carried returns the attributes that With has put into a context. It must not be changed.
func Carried(ctx context.Context) []attribute.KeyValue {
	attributes, _ := ctx.Value(carried{}).([]attribute.KeyValue)
	return attributes
}

// Value returns the value of a string attribute in the context, "" if there is none.
func Value(ctx context.Context, name string) string {
	for _, one := range Carried(ctx) {
		if string(one.Key) == name {
			return one.Value.AsString()
		}
	}
	return ""
}

// Start begins a span with the attributes of the context. The caller ends it.
func Start(ctx context.Context, tracer trace.Tracer, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(Carried(ctx)...), trace.WithAttributes(attributes...))
}

// StartTurn begins the span of a turn, the parent of all its other spans. They have the ids too.
func StartTurn(ctx context.Context, tracer trace.Tracer, conversationID, turnID string) (context.Context, trace.Span) {
	return Start(With(ctx, attribute.String(ConversationID, conversationID), attribute.String(TurnID, turnID)), tracer, "turn", trace.SpanKindInternal)
}

// SetMode names a turn's span by its mode, once that is known.
func SetMode(turn trace.Span, mode string) {
	turn.SetName("turn " + mode)
	turn.SetAttributes(attribute.String(Mode, mode))
}

// Fail marks a span as failed. The kind is one of a small set of words; error messages are not recorded, since they may
// repeat what a person wrote.
func Fail(failed trace.Span, kind string) {
	failed.SetAttributes(attribute.String(ErrorType, kind))
	failed.SetStatus(codes.Error, kind)
}

// MaxText is how many bytes of one text a span holds at most.
const MaxText = 32 << 10

// Text is an attribute with text of a person or a model, truncated to MaxText.
func Text(name, text string) []attribute.KeyValue {
	if len(text) <= MaxText {
		return []attribute.KeyValue{attribute.String(name, strings.ToValidUTF8(text, "\uFFFD"))}
	}
	return []attribute.KeyValue{attribute.String(name, strings.ToValidUTF8(text[:MaxText], "")), attribute.Bool(TextCut, true)}
}
