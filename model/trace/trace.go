// Package trace reports a model's requests to OpenTelemetry: one span each, and the metrics of the GenAI
// conventions.
//
// [New] must be the outermost wrapper of a model, so that its span covers the whole request with its retries,
// as the conventions require; [Attempts] belongs inside the retries and records each failed attempt in that
// span. Without a tracer or a meter nothing is recorded.
//
// Pitfalls: a span holds no text that people or models wrote unless Options.MessageText is set, and then only
// up to a limit. The provider's error messages count as such text, since they may repeat the request; a span
// has the reason instead.
package trace

import (
	"context"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/model"
)

// Options says where to report.
type Options struct {
	// Tracer makes the spans. Default: none are made.
	Tracer oteltrace.Tracer
	// Meter makes the metrics. Default: none are made.
	Meter metric.Meter
	// MessageText puts the request and the answer into the span, up to span.MaxText bytes each. Default false.
	MessageText bool
}

// Model is a model whose requests are traced. It is safe for concurrent use.
type Model struct {
	model.Model
	options Options
	meters  *meters // of requests for answers
	others  *meters // of requests for embeddings
}

// New wraps a model. The result is a [model.Sessions] if the model is one.
func New(inner model.Model, options Options) model.Model {
	if options.Tracer == nil {
		options.Tracer = noop.Tracer{}
	}
	traced := &Model{Model: inner, options: options, meters: newMeters(options.Meter, inner.Info(), chat), others: newMeters(options.Meter, inner.Info(), model.Embeddings)}
	if agent, ok := inner.(model.Sessions); ok {
		return &sessions{Model: traced, agent: agent}
	}
	return traced
}

// Stream sends body and yields the answer under a span; see [model.Model].
func (m *Model) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		ctx, c := m.begin(ctx, body)
		defer c.end()
		for delta, err := range m.Model.Stream(ctx, body) {
			if err != nil {
				c.failed(err)
			} else {
				c.received(delta)
			}
			if !yield(delta, err) {
				return
			}
		}
		c.over = true
	}
}

// chat is the operation of a request for an answer; a session is opened by open_session.
const chat = "chat"

func (m *Model) begin(ctx context.Context, body []byte) (context.Context, *call) {
	info, operation, meters := m.Info(), chat, m.meters
	if forwarded := model.ForwardingOf(ctx); forwarded != nil && forwarded.Other != "" {
		operation, meters = forwarded.Other, m.others
	}
	ctx, under := span.Start(ctx, m.options.Tracer, operation+" "+info.Name, oteltrace.SpanKindClient,
		attribute.String(span.OperationName, operation),
		attribute.String(span.ProviderName, info.Provider),
		attribute.String(span.RequestModel, info.Name),
		attribute.Bool(span.RequestStream, operation == chat),
		attribute.Int(span.RequestBytes, len(body)),
	)
	c := &call{Model: m, meters: meters, ctx: ctx, span: under, begin: time.Now()}
	if c.text = m.options.MessageText && under.IsRecording(); c.text {
		under.SetAttributes(span.Text(span.RequestBody, string(body[:min(len(body), span.MaxText+1)]))...)
		c.answer = &model.Answer{}
	}
	return ctx, c
}

// Attempts is a model that records failed requests in the current span, since a retry may hide them.
type Attempts struct{ model.Model }

// Stream sends body and yields the answer; see [model.Model].
func (a Attempts) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		begin := time.Now()
		for delta, err := range a.Model.Stream(ctx, body) {
			if err != nil {
				attributes := append(failure(model.AsError(err)), attribute.Float64("continuo.attempt.seconds", time.Since(begin).Seconds()))
				oteltrace.SpanFromContext(ctx).AddEvent("attempt_failed", oteltrace.WithAttributes(attributes...))
			}
			if !yield(delta, err) {
				return
			}
		}
	}
}

// failure returns the attributes of an error that may be reported.
func failure(err *model.Error) []attribute.KeyValue {
	attributes := []attribute.KeyValue{attribute.String(span.ErrorType, string(err.Reason))}
	if err.Status != 0 {
		attributes = append(attributes, attribute.Int(span.HTTPStatus, err.Status))
	}
	return attributes
}
