package trace_test

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/trace"
)

// acts is a tool made of a function.
type acts func(ctx context.Context) tool.Result

func (acts) Spec() continuo.ToolSpec                            { return continuo.ToolSpec{Name: "fs.read"} }
func (f acts) Run(ctx context.Context, _ tool.Call) tool.Result { return f(ctx) }

// run makes one call and returns its span.
func run(t *testing.T, ctx context.Context, f acts, text bool) (tracetest.SpanStub, attribute.Set) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer(span.Scope)
	set := trace.NewSource(tool.Set{f}, trace.Options{Tracer: tracer, MessageText: text}).Tools(ctx)
	func() {
		defer func() { _ = recover() }()
		set[0].Run(ctx, tool.Call{ID: "call_1", Arguments: `{"path":"secret"}`})
	}()
	got := spans.GetSpans()
	if len(got) != 1 {
		t.Fatalf("%d spans, want one", len(got))
	}
	return got[0], attribute.NewSet(got[0].Attributes...)
}

func get(set attribute.Set, name attribute.Key) string {
	value, _ := set.Value(name)
	return value.String()
}

func ok(context.Context) tool.Result {
	return tool.Result{Outcome: "Read it", Content: "a secret text"}
}
func broken(context.Context) tool.Result { return tool.Failure("no secret file") }

func TestACall(t *testing.T) {
	s, set := run(t, span.With(t.Context(), attribute.String(span.TurnID, "turn_1")), ok, false)
	if s.Name != "execute_tool fs.read" || s.SpanKind != oteltrace.SpanKindInternal || s.Status.Code != codes.Unset {
		t.Errorf("the span: %+v", s)
	}
	for name, want := range map[attribute.Key]string{
		span.OperationName: "execute_tool", span.ToolName: "fs.read", span.ToolType: "function", span.ToolCallID: "call_1",
		span.ResultBytes: "13", span.TurnID: "turn_1", span.ErrorType: "",
	} {
		if got := get(set, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if all := set.Encoded(attribute.DefaultEncoder()); strings.Contains(all, "secret") {
		t.Errorf("the span has text: %s", all)
	}
}

func TestHowACallFails(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), continuo.Turn{}.StartedAt)
	defer stop()
	for want, test := range map[string]struct {
		ctx context.Context
		acts
	}{
		"tool_error": {t.Context(), broken},
		"cancelled":  {cancelled, broken},
		"timeout":    {late, broken},
		"panic":      {t.Context(), func(context.Context) tool.Result { panic("my secret") }},
	} {
		s, set := run(t, test.ctx, test.acts, false)
		if get(set, span.ErrorType) != want || s.Status.Code != codes.Error || s.Status.Description != want || len(s.Events) != 0 {
			t.Errorf("%s: the span: %+v", want, s)
		}
	}
	if _, set := run(t, cancelled, ok, false); set.HasValue(span.ErrorType) {
		t.Error("a call that went well although the turn has ended counts as failed")
	}
}

func TestTextIsThereWhenItIsAskedFor(t *testing.T) {
	_, set := run(t, t.Context(), ok, true)
	if get(set, span.ToolCallArguments) != `{"path":"secret"}` || get(set, span.ToolCallResult) != "a secret text" {
		t.Errorf("got %s", set.Encoded(attribute.DefaultEncoder()))
	}
}

func TestTheToolInsideSeesTheSpan(t *testing.T) {
	var seen oteltrace.SpanContext
	s, _ := run(t, t.Context(), func(ctx context.Context) tool.Result {
		seen = oteltrace.SpanContextFromContext(ctx)
		return tool.Result{}
	}, false)
	if !seen.IsValid() || seen.SpanID() != s.SpanContext.SpanID() {
		t.Errorf("the tool saw %v", seen)
	}
}

func TestWithoutATracer(t *testing.T) {
	wrapped := trace.New(acts(ok), trace.Options{})
	if got := wrapped.Run(t.Context(), tool.Call{}); got != ok(t.Context()) || wrapped.Spec().Name != "fs.read" || wrapped.Unwrap() == nil {
		t.Errorf("got %+v", got)
	}
}
