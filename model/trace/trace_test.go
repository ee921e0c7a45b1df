package trace_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/model/openai"
	"github.com/continuo-log/continuo/model/retry"
	"github.com/continuo-log/continuo/model/trace"
)

// fixture records spans and metrics.
type fixture struct {
	t       *testing.T
	spans   *tracetest.InMemoryExporter
	reader  *sdkmetric.ManualReader
	options trace.Options
}

func newFixture(t *testing.T) *fixture {
	h := &fixture{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	h.options.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(h.spans)).Tracer(span.Scope)
	h.options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(h.reader)).Meter(span.Scope)
	return h
}

// ask makes one request and returns its error.
func ask(ctx context.Context, m model.Model, body string) *model.Error {
	var failed *model.Error
	for _, err := range m.Stream(ctx, []byte(body)) {
		failed = model.AsError(err)
	}
	return failed
}

// one returns the only span and its attributes.
func (h *fixture) one() (tracetest.SpanStub, attribute.Set) {
	h.t.Helper()
	spans := h.spans.GetSpans()
	if len(spans) != 1 {
		h.t.Fatalf("%d spans, want one", len(spans))
	}
	return spans[0], attribute.NewSet(spans[0].Attributes...)
}

func get(set attribute.Set, name attribute.Key) string {
	value, _ := set.Value(name)
	return value.String()
}

// histogram is what a metric has counted under some attributes.
type histogram struct {
	count uint64
	sum   float64
}

// metrics reads every histogram, by name and by its attributes as text.
func (h *fixture) metrics() map[string]map[string]histogram {
	h.t.Helper()
	var data metricdata.ResourceMetrics
	if err := h.reader.Collect(context.Background(), &data); err != nil {
		h.t.Fatal(err)
	}
	all := map[string]map[string]histogram{}
	for _, scope := range data.ScopeMetrics {
		for _, metric := range scope.Metrics {
			all[metric.Name] = map[string]histogram{}
			switch points := metric.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, point := range points.DataPoints {
					all[metric.Name][key(point.Attributes)] = histogram{point.Count, point.Sum}
				}
			case metricdata.Histogram[int64]:
				for _, point := range points.DataPoints {
					all[metric.Name][key(point.Attributes)] = histogram{point.Count, float64(point.Sum)}
				}
			}
		}
	}
	return all
}

func key(set attribute.Set) string { return set.Encoded(attribute.DefaultEncoder()) }

const names = "gen_ai.operation.name=chat,gen_ai.provider.name=script,gen_ai.request.model=script"

func TestTheLawsHoldThroughIt(t *testing.T) {
	h := newFixture(t)
	h.options.MessageText = true
	modeltest.RunModel(t, trace.New(demo.New(demo.Options{}), h.options), []byte(`{"model":"demo","messages":[{"role":"user","content":"Hello"}]}`))
	if len(h.spans.GetSpans()) == 0 {
		t.Error("there are no spans")
	}
	modeltest.Run(t, modeltest.Options{Folder: "../openai/testdata", New: func(baseURL, key string, client *http.Client) model.Model {
		inner := openai.New(openai.Options{BaseURL: baseURL, APIKey: key, Name: "gpt-4o", Provider: "openai", HTTPClient: client})
		return trace.New(trace.Attempts{Model: inner}, h.options)
	}})
	for _, s := range h.spans.GetSpans() {
		if text := key(attribute.NewSet(s.Attributes...)); strings.Contains(text, "test-key") {
			t.Fatalf("a span has the API key: %s", text)
		}
	}
}

func TestWithoutTracerAndMeter(t *testing.T) {
	modeltest.RunModel(t, trace.New(demo.New(demo.Options{}), trace.Options{}), []byte(`{"model":"demo","messages":[{"role":"user","content":"Hello"}]}`))
}

// A request for embeddings is none for a chat.
func TestAnotherOperation(t *testing.T) {
	h := newFixture(t)
	m := trace.New(&modeltest.Script{Answers: [][]modeltest.Step{{{Delta: model.Delta{Finish: "stop"}}}}}, h.options)
	if failed := ask(model.WithForwarding(t.Context(), &model.Forwarding{Other: model.Embeddings}), m, `{}`); failed != nil {
		t.Fatal(failed)
	}
	if s, set := h.one(); s.Name != "embeddings script" || get(set, span.OperationName) != "embeddings" {
		t.Errorf("the span: %+v", s)
	}
}

func TestAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		first := modeltest.Text("a secret answer")
		first.Wait = 2 * time.Second
		last := modeltest.Step{Wait: time.Second, Delta: model.Delta{Finish: "stop", Model: "script-2026", Usage: &continuo.Usage{InputTokens: 30, OutputTokens: 4, CachedTokens: 20, ReasoningTokens: 1}}}
		m := trace.New(&modeltest.Script{Answers: [][]modeltest.Step{{first, last}}}, h.options)
		ctx := span.With(t.Context(), attribute.String(span.ConversationID, "conv_1"))
		if failed := ask(ctx, m, `{"a secret":"question"}`); failed != nil {
			t.Fatal(failed)
		}
		s, set := h.one()
		if s.Name != "chat script" || s.SpanKind != oteltrace.SpanKindClient || s.Status.Code != codes.Unset || s.EndTime.Sub(s.StartTime) != 3*time.Second {
			t.Errorf("the span: %+v", s)
		}
		for name, want := range map[attribute.Key]string{
			span.OperationName: "chat", span.ProviderName: "script", span.RequestModel: "script", span.RequestStream: "true",
			span.ResponseModel: "script-2026", span.FinishReasons: `["stop"]`, span.TimeToFirstChunk: "2",
			span.InputTokens: "30", span.OutputTokens: "4", span.CacheReadTokens: "20", span.ReasoningTokens: "1",
			span.ConversationID: "conv_1", span.RequestBytes: "23",
		} {
			if got := get(set, name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if all := key(set); strings.Contains(all, "secret") || set.HasValue(span.CacheWriteTokens) || set.HasValue(span.Abandoned) {
			t.Errorf("the attributes: %s", all)
		}
		got := h.metrics()
		for name, want := range map[string]map[string]histogram{
			span.OperationDuration:     {names: {1, 3}},
			span.OperationToFirstChunk: {names: {1, 2}},
			span.TokenUsage:            {names + ",gen_ai.token.type=input": {1, 30}, names + ",gen_ai.token.type=output": {1, 4}},
		} {
			for labels, value := range want {
				if got[name][labels] != value || len(got[name]) != len(want) {
					t.Errorf("%s is %v, want %v under %s", name, got[name], value, labels)
				}
			}
		}
	})
}

func TestMessageTextIsThereWhenItIsAskedFor(t *testing.T) {
	h := newFixture(t)
	h.options.MessageText = true
	call := modeltest.Step{Delta: model.Delta{ToolCall: &model.ToolCallDelta{ID: "c1", Type: "function", Name: "get", Arguments: `{"n":1}`, Done: true}}}
	m := trace.New(&modeltest.Script{Answers: [][]modeltest.Step{{{Delta: model.Delta{Reasoning: "hm"}}, modeltest.Text("well"), call, {Delta: model.Delta{Finish: "tool_calls"}}}}}, h.options)
	ask(t.Context(), m, `{"the":"body"}`)
	_, set := h.one()
	want := `[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"well"},{"type":"tool_call","id":"c1","name":"get","arguments":{"n":1}}],"finish_reason":"tool_calls"}]`
	if got := get(set, span.OutputMessages); got != want {
		t.Errorf("the answer is %s", got)
	}
	if got := get(set, span.RequestBody); got != `{"the":"body"}` {
		t.Errorf("the request is %s", got)
	}
}

func TestTextIsBounded(t *testing.T) {
	h := newFixture(t)
	h.options.MessageText = true
	steps := []modeltest.Step{}
	for range 100 {
		steps = append(steps, modeltest.Text(strings.Repeat("x", 1000)))
	}
	m := trace.New(&modeltest.Script{Answers: [][]modeltest.Step{append(steps, modeltest.Finish())}}, h.options)
	ask(t.Context(), m, strings.Repeat("y", 100_000))
	_, set := h.one()
	if body, answer := get(set, span.RequestBody), get(set, span.OutputMessages); len(body) != span.MaxText || len(answer) != span.MaxText || get(set, span.TextCut) != "true" {
		t.Errorf("%d and %d bytes", len(body), len(answer))
	}
}

func TestAFailureIsNamedWithoutItsMessage(t *testing.T) {
	h := newFixture(t)
	broken := modeltest.Step{Err: &model.Error{Reason: continuo.ReasonRateLimit, Status: 429, Message: "you wrote: my secret"}}
	m := trace.New(&modeltest.Script{Answers: [][]modeltest.Step{{modeltest.Text("half"), broken}}}, h.options)
	if failed := ask(t.Context(), m, "{}"); failed == nil || failed.Message != "you wrote: my secret" {
		t.Errorf("the caller got %v", failed)
	}
	s, set := h.one()
	if s.Status.Code != codes.Error || s.Status.Description != "rate_limit" || get(set, span.ErrorType) != "rate_limit" || get(set, span.HTTPStatus) != "429" {
		t.Errorf("the span: %+v", s)
	}
	if all := key(set); strings.Contains(all, "secret") || len(s.Events) != 0 {
		t.Errorf("the span tells the message: %s, %v", all, s.Events)
	}
	if got := h.metrics()[span.OperationDuration]; got["error.type=rate_limit,"+names].count != 1 || len(got) != 1 {
		t.Errorf("the durations: %v", got)
	}
}

func TestOneSpanForAllAttempts(t *testing.T) {
	h := newFixture(t)
	script := &modeltest.Script{Answers: [][]modeltest.Step{{modeltest.Fails(continuo.ReasonNetwork)}, {modeltest.Text("fine"), modeltest.Finish()}}}
	m := trace.New(retry.New(trace.Attempts{Model: script}, retry.Options{FirstWait: time.Nanosecond}), h.options)
	ask(t.Context(), m, "{}")
	s, set := h.one()
	if len(s.Events) != 1 || s.Events[0].Name != "attempt_failed" || get(attribute.NewSet(s.Events[0].Attributes...), span.ErrorType) != "network" || set.HasValue(span.ErrorType) {
		t.Errorf("the span: %+v", s)
	}
}

func TestAConsumerThatStops(t *testing.T) {
	h := newFixture(t)
	m := trace.New(&modeltest.Script{Answers: [][]modeltest.Step{{modeltest.Text("a"), modeltest.Text("b"), modeltest.Finish()}}}, h.options)
	for range m.Stream(t.Context(), nil) {
		break
	}
	s, set := h.one()
	if get(set, span.Abandoned) != "true" || s.Status.Code != codes.Unset || s.EndTime.IsZero() {
		t.Errorf("the span: %+v", s)
	}
}

func TestACancelledRequestIsCountedAllTheSame(t *testing.T) {
	h := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ask(ctx, trace.New(&modeltest.Script{Answers: [][]modeltest.Step{{modeltest.Text("a")}}}, h.options), "{}")
	if got := h.metrics()[span.OperationDuration]["error.type=cancelled,"+names]; got.count != 1 {
		t.Errorf("the durations: %v", h.metrics()[span.OperationDuration])
	}
	if _, set := h.one(); get(set, span.ErrorType) != "cancelled" {
		t.Error("the span does not say so")
	}
}
