// Package trace reports to OpenTelemetry a store's work for a turn: reading and appending entries, and what
// the owner of a turn writes. Conversations, runs and leases are measured without spans; everything else
// passes through untouched.
//
// A span is made only if the caller's context has one, so that a client that tails a log makes no traces of
// its own; durations are always measured, under the names of the semantic conventions for databases. Without
// a tracer and a meter nothing is recorded.
//
// Pitfalls: appends to one conversation are combined, and the span of a batch is a child of the turn that led
// it; the other turns' spans show the same time as waiting.
package trace

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/span"
)

// Options says where to report.
type Options struct {
	// Tracer makes the spans. Default: none are made.
	Tracer oteltrace.Tracer
	// Meter makes the metrics. Default: none are made.
	Meter metric.Meter
	// System is what the conventions call the engine: sqlite, postgresql. Default "other_sql".
	System string
}

// store is a store whose calls are traced.
type store struct {
	continuo.Store
	tracer  oteltrace.Tracer
	seconds metric.Float64Histogram
	system  attribute.KeyValue
}

// notifyingStore is a traced store that is a [continuo.ChangeNotifier] because the inner store is one:
// callers that find a notifier poll less often.
type notifyingStore struct {
	*store
	continuo.ChangeNotifier
}

// New wraps a store. The result is a [continuo.ChangeNotifier] if the store is one. It is safe for concurrent
// use.
func New(inner continuo.Store, options Options) continuo.Store {
	if options.Tracer == nil {
		options.Tracer = noop.Tracer{}
	}
	if options.Meter == nil {
		options.Meter = noopmetric.Meter{}
	}
	if options.System == "" {
		options.System = "other_sql"
	}
	// Meters accept the constant name and unit, so the error is ignored. The buckets begin lower than those
	// of the conventions, since an embedded engine answers within a millisecond.
	seconds, _ := options.Meter.Float64Histogram(span.StoreOperationDuration, metric.WithUnit("s"),
		metric.WithDescription("How long the store took, by what it did."),
		metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10))
	traced := &store{Store: inner, tracer: options.Tracer, seconds: seconds, system: attribute.String(span.DBSystem, options.System)}
	if notifier, ok := inner.(continuo.ChangeNotifier); ok {
		return &notifyingStore{traced, notifier}
	}
	return traced
}

// Append is part of [continuo.Store]. An append that begins a turn is the operation begin_turn.
func (s *store) Append(ctx context.Context, batch continuo.Batch) (err error) {
	operation := "append"
	if batch.Begin != nil {
		operation = "begin_turn"
	}
	ctx, end := s.begin(ctx, operation,
		attribute.String(span.ConversationID, batch.ConversationID),
		attribute.Int(span.Entries, len(batch.Entries)),
		attribute.Int(span.Events, eventsOf(batch)),
	)
	defer func() { end(err) }()
	return s.Store.Append(ctx, batch)
}

// Entries is part of [continuo.Store].
func (s *store) Entries(ctx context.Context, conversationID string, query continuo.EntryQuery) (entries []continuo.Entry, err error) {
	ctx, end := s.begin(ctx, "entries", attribute.String(span.ConversationID, conversationID))
	defer func() {
		failure := err
		if large := new(continuo.LargeEntryError); errors.As(err, &large) { // the caller reads it alone next
			failure = nil
		}
		end(failure, attribute.Int(span.Entries, len(entries)))
	}()
	return s.Store.Entries(ctx, conversationID, query)
}

// EntriesAt is part of [continuo.Store].
func (s *store) EntriesAt(ctx context.Context, places []continuo.EntryPlace, maxBytes int64) (entries []continuo.Entry, err error) {
	ctx, end := s.begin(ctx, "entries")
	defer func() { end(err, attribute.Int(span.Entries, len(entries))) }()
	return s.Store.EntriesAt(ctx, places, maxBytes)
}

// UpdateTurn is part of [continuo.Store]. Lease renewals are not traced.
func (s *store) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) (signals []continuo.TurnSignal, err error) {
	if len(update.Events) == 0 && update.State == "" {
		return s.Store.UpdateTurn(ctx, update)
	}
	ctx, end := s.begin(ctx, "update_turn",
		attribute.String(span.ConversationID, update.ConversationID), attribute.String(span.TurnID, update.TurnID),
		attribute.Int(span.Events, len(update.Events)), attribute.String(span.State, string(update.State)),
	)
	defer func() { end(err) }()
	return s.Store.UpdateTurn(ctx, update)
}

func eventsOf(batch continuo.Batch) int {
	count := 0
	for i := range batch.Turns {
		count += len(batch.Turns[i].Events)
	}
	if batch.Begin != nil {
		count += len(batch.Begin.Events)
	}
	return count
}

// begin starts an operation and returns the function to call at its end.
func (s *store) begin(ctx context.Context, operation string, attributes ...attribute.KeyValue) (inside context.Context, end func(error, ...attribute.KeyValue)) {
	name := attribute.String(span.DBOperation, operation)
	under := oteltrace.Span(noop.Span{})
	if oteltrace.SpanFromContext(ctx).IsRecording() {
		ctx, under = span.Start(ctx, s.tracer, "store "+operation, oteltrace.SpanKindClient, append(attributes, s.system, name)...)
	}
	begin := time.Now()
	return ctx, func(err error, more ...attribute.KeyValue) {
		if err != nil {
			span.Fail(under, kindOf(err))
		}
		under.SetAttributes(more...)
		under.End()
		s.record(ctx, operation, begin, err)
	}
}

// record measures an operation from its begin to now.
func (s *store) record(ctx context.Context, operation string, begin time.Time, err error) {
	labels := []attribute.KeyValue{s.system, attribute.String(span.DBOperation, operation)}
	if err != nil {
		labels = append(labels, attribute.String(span.ErrorType, kindOf(err)))
	}
	s.seconds.Record(ctx, time.Since(begin).Seconds(), metric.WithAttributes(labels...))
}

// kindOf is the value of the attribute error.type: each error of a store's contract has its own.
func kindOf(err error) string {
	var conflict *continuo.ConflictError
	if errors.As(err, &conflict) {
		return "conflict"
	}
	for _, known := range []struct {
		err  error
		kind string
	}{
		{continuo.ErrLeaseLost, "lease_lost"},
		{continuo.ErrBusy, "busy"},
		{continuo.ErrNotFound, "not_found"},
		{continuo.ErrArchived, "archived"},
		{continuo.ErrExists, "exists"},
		{continuo.ErrFull, "full"},
		{continuo.ErrReadOnly, "read_only"},
		{continuo.ErrUnavailable, "unavailable"},
		{continuo.ErrClosed, "closed"},
		{context.DeadlineExceeded, "timeout"},
		{context.Canceled, "cancelled"},
	} {
		if errors.Is(err, known.err) {
			return known.kind
		}
	}
	return "_OTHER"
}

// HasResidue is part of continuo.ResidueStore.
func (s *store) HasResidue() bool {
	inner, ok := s.Store.(continuo.ResidueStore)
	return ok && inner.HasResidue()
}
