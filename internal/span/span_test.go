package span_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/dbconv"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
	"go.opentelemetry.io/otel/trace"

	"github.com/continuo-log/continuo/internal/span"
)

func TestTheNamesAreThoseOfTheConventions(t *testing.T) {
	for ours, theirs := range map[string]attribute.Key{
		span.OperationName: semconv.GenAIOperationNameKey, span.ProviderName: semconv.GenAIProviderNameKey,
		span.ConversationID: semconv.GenAIConversationIDKey, span.RequestModel: semconv.GenAIRequestModelKey,
		span.RequestStream: semconv.GenAIRequestStreamKey, span.ResponseModel: semconv.GenAIResponseModelKey,
		span.FinishReasons: semconv.GenAIResponseFinishReasonsKey, span.TimeToFirstChunk: semconv.GenAIResponseTimeToFirstChunkKey,
		span.InputTokens: semconv.GenAIUsageInputTokensKey, span.OutputTokens: semconv.GenAIUsageOutputTokensKey,
		span.CacheReadTokens: semconv.GenAIUsageCacheReadInputTokensKey, span.CacheWriteTokens: semconv.GenAIUsageCacheCreationInputTokensKey,
		span.ReasoningTokens: semconv.GenAIUsageReasoningOutputTokensKey, span.OutputMessages: semconv.GenAIOutputMessagesKey,
		span.TokenType: semconv.GenAITokenTypeKey, span.ToolName: semconv.GenAIToolNameKey, span.ToolType: semconv.GenAIToolTypeKey,
		span.ToolCallID: semconv.GenAIToolCallIDKey, span.ToolCallArguments: semconv.GenAIToolCallArgumentsKey,
		span.ToolCallResult: semconv.GenAIToolCallResultKey, span.ErrorType: semconv.ErrorTypeKey,
		span.HTTPStatus: semconv.HTTPResponseStatusCodeKey, span.DBSystem: semconv.DBSystemNameKey, span.DBOperation: semconv.DBOperationNameKey,
		span.TokenUsage:             attribute.Key(genaiconv.ClientTokenUsage{}.Name()),
		span.OperationDuration:      attribute.Key(genaiconv.ClientOperationDuration{}.Name()),
		span.OperationToFirstChunk:  attribute.Key(genaiconv.ClientOperationTimeToFirstChunk{}.Name()),
		span.StoreOperationDuration: attribute.Key(dbconv.ClientOperationDuration{}.Name()),
	} {
		if ours != string(theirs) {
			t.Errorf("%q is called %q", ours, theirs)
		}
	}
}

func TestSpansOfATurnCarryItsIDs(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)).Tracer(span.Scope)
	ctx, turn := span.StartTurn(context.Background(), tracer, "conv_1", "turn_1")
	span.SetMode(turn, "chat")
	_, inner := span.Start(ctx, tracer, "inner", trace.SpanKindClient, attribute.Int("n", 1))
	span.Fail(inner, "timeout")
	inner.End()
	turn.End()
	spans := exporter.GetSpans()
	if len(spans) != 2 || spans[1].Name != "turn chat" || spans[0].Parent.SpanID() != spans[1].SpanContext.SpanID() {
		t.Fatalf("got %+v", spans)
	}
	for _, s := range spans {
		set := attribute.NewSet(s.Attributes...)
		conversation, _ := set.Value(span.ConversationID)
		id, _ := set.Value(span.TurnID)
		if conversation.AsString() != "conv_1" || id.AsString() != "turn_1" {
			t.Errorf("%s carries %v", s.Name, s.Attributes)
		}
	}
	if set := attribute.NewSet(spans[0].Attributes...); !set.HasValue("n") || !set.HasValue(span.ErrorType) || spans[0].Status.Code != codes.Error {
		t.Errorf("the inner span: %+v", spans[0])
	}
}

func TestSiblingsDoNotShareAttributes(t *testing.T) {
	parent := span.With(context.Background(), attribute.Int("a", 1))
	one, two := span.With(parent, attribute.Int("b", 1)), span.With(parent, attribute.Int("c", 1))
	if a, b := span.Carried(one), span.Carried(two); len(a) != 2 || len(b) != 2 || a[1].Key != "b" || b[1].Key != "c" || len(span.Carried(parent)) != 1 {
		t.Errorf("got %v and %v", a, b)
	}
}

func TestTextIsBoundedAndValid(t *testing.T) {
	long := span.Text("text", strings.Repeat("é", span.MaxText))
	if got := long[0].Value.AsString(); len(long) != 2 || len(got) > span.MaxText || len(got) < span.MaxText-4 || strings.Trim(got, "é") != "" {
		t.Errorf("%d attributes, %d bytes", len(long), len(long[0].Value.AsString()))
	}
	if odd := span.Text("text", strings.Repeat("é", span.MaxText)[1:]); strings.Trim(odd[0].Value.AsString(), "é") != "" {
		t.Error("half a character is left")
	}
	if short := span.Text("text", "caf\xe9"); len(short) != 1 || short[0].Value.AsString() != "caf\uFFFD" {
		t.Errorf("got %v", short)
	}
}
