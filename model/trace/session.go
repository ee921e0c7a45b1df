package trace

import (
	"context"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/model"
)

// sessions is a model with sessions, which are traced like their requests.
type sessions struct {
	*Model
	agent model.Sessions
}

// openSession is the operation of opening a session. The conventions have no name for it.
const openSession = "open_session"

// Open opens a session under a span; see [model.Sessions]. The span lasts from the start of the agent's
// program until the session is open, new or loaded.
func (s *sessions) Open(ctx context.Context, id string) (model.Session, error) {
	info, begin := s.Info(), time.Now()
	attributes := []attribute.KeyValue{
		attribute.String(span.OperationName, openSession),
		attribute.String(span.ProviderName, info.Provider),
		attribute.String(span.RequestModel, info.Name),
	}
	ctx, under := span.Start(ctx, s.options.Tracer, openSession+" "+info.Name, oteltrace.SpanKindClient, attributes...)
	defer under.End()
	opened, err := s.agent.Open(ctx, id)
	if err != nil {
		reason := string(model.AsError(err).Reason)
		span.Fail(under, reason)
		attributes = append(attributes, attribute.String(span.ErrorType, reason))
	}
	s.meters.duration.Record(ctx, time.Since(begin).Seconds(), metric.WithAttributeSet(attribute.NewSet(attributes...)))
	if err != nil {
		return nil, err
	}
	under.SetAttributes(attribute.Bool("continuo.session.loaded", opened.Loaded()))
	return &session{Session: opened, traced: &Model{Model: opened, options: s.options, meters: s.meters, others: s.others}}, nil
}

// session is a session whose requests are traced.
type session struct {
	model.Session
	traced *Model
}

// Stream sends body and yields the answer under a span; see [model.Model].
func (s *session) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return s.traced.Stream(ctx, body)
}
