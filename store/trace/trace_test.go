package trace_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/store/trace"
)

// scripted answers what is traced with one error, and panics at everything else.
type scripted struct {
	continuo.Store
	err error
}

func (s scripted) Append(context.Context, continuo.Batch) error { return s.err }

func (s scripted) Entries(context.Context, string, continuo.EntryQuery) ([]continuo.Entry, error) {
	return make([]continuo.Entry, 3), s.err
}

func (s scripted) UpdateTurn(context.Context, continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	return nil, s.err
}

func (s scripted) Create(context.Context, continuo.Conversation, []continuo.Entry) error {
	return s.err
}

func (s scripted) Conversation(context.Context, string) (continuo.Conversation, error) {
	return continuo.Conversation{}, s.err
}

func (s scripted) ConversationByKey(context.Context, string, string) (continuo.Conversation, error) {
	return continuo.Conversation{}, s.err
}

func (s scripted) Update(context.Context, string, continuo.ConversationChange) (continuo.Conversation, error) {
	return continuo.Conversation{}, s.err
}

func (s scripted) Revision(context.Context, string) (int64, error) { return 0, s.err }

func (s scripted) Receipt(context.Context, string, string) (continuo.Receipt, error) {
	return continuo.Receipt{}, s.err
}

func (s scripted) AdvanceReceipt(context.Context, string, continuo.Receipt) (continuo.Receipt, error) {
	return continuo.Receipt{}, s.err
}

func (s scripted) TakeTurn(context.Context, continuo.Turn, string, time.Duration) (continuo.Turn, error) {
	return continuo.Turn{}, s.err
}

func (s scripted) Runs(context.Context, continuo.RunQuery) ([]continuo.Run, error) { return nil, s.err }

func (s scripted) TakeLease(context.Context, string, string, int64) (continuo.Lease, error) {
	return continuo.Lease{}, s.err
}

// house is a traced store and where its spans and metrics end up.
type house struct {
	continuo.Store
	t      *testing.T
	tracer oteltrace.Tracer
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
}

func newHouse(t *testing.T, err error) *house {
	h := &house{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	h.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(h.spans)).Tracer(span.Scope)
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(h.reader)).Meter(span.Scope)
	h.Store = trace.New(scripted{err: err}, trace.Options{Tracer: h.tracer, Meter: meter, System: "sqlite"})
	return h
}

// everything does each traced thing once, under a turn's span or under none.
func (h *house) everything(underTurn bool) {
	ctx := context.Background()
	if underTurn {
		var turn oteltrace.Span
		ctx, turn = span.StartTurn(ctx, h.tracer, "conv_1", "turn_1")
		defer turn.End()
	}
	events := make([]continuo.TurnEvent, 2)
	_ = h.Append(ctx, continuo.Batch{ConversationID: "conv_1", Entries: []continuo.Entry{{Content: continuo.Text("secret")}}, Turns: []continuo.TurnUpdate{{Events: events}}})
	_, _ = h.Entries(ctx, "conv_1", continuo.EntryQuery{})
	_ = h.Append(ctx, continuo.Batch{ConversationID: "conv_1", Entries: make([]continuo.Entry, 1), Begin: &continuo.TurnBegin{Events: events}})
	_, _ = h.UpdateTurn(ctx, continuo.TurnUpdate{ConversationID: "conv_1", TurnID: "turn_1", Events: events})
	_, _ = h.UpdateTurn(ctx, continuo.TurnUpdate{ConversationID: "conv_1", TurnID: "turn_1", Lease: time.Second})
}

// durations counts what was measured, by its attributes as text.
func (h *house) durations() map[string]uint64 {
	h.t.Helper()
	var data metricdata.ResourceMetrics
	if err := h.reader.Collect(context.Background(), &data); err != nil {
		h.t.Fatal(err)
	}
	counts := map[string]uint64{}
	for _, point := range data.ScopeMetrics[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints {
		counts[point.Attributes.Encoded(attribute.DefaultEncoder())] += point.Count
	}
	return counts
}

func TestWhatATurnDoes(t *testing.T) {
	h := newHouse(t, nil)
	h.everything(true)
	var got []string
	for _, s := range h.spans.GetSpans() {
		set := attribute.NewSet(s.Attributes...)
		if text := set.Encoded(attribute.DefaultEncoder()); strings.Contains(text, "secret") || !strings.Contains(text, "gen_ai.conversation.id=conv_1") || !strings.Contains(text, "continuo.turn.id=turn_1") {
			t.Errorf("%s carries %s", s.Name, text)
		}
		entries, _ := set.Value(span.Entries)
		events, _ := set.Value(span.Events)
		got = append(got, fmt.Sprintf("%s %s %s", s.Name, entries, events))
	}
	if want := "store append 1 2; store entries 3 ; store begin_turn 1 2; store update_turn  2; turn  "; strings.Join(got, "; ") != want {
		t.Errorf("the spans: %s", strings.Join(got, "; "))
	}
}

// TestWhatIsMeasuredOnly: what is done around turns too has no spans, also under one.
func TestWhatIsMeasuredOnly(t *testing.T) {
	h := newHouse(t, continuo.ErrNotFound)
	ctx, turn := span.StartTurn(t.Context(), h.tracer, "conv_1", "turn_1")
	_ = h.Create(ctx, continuo.Conversation{}, nil)
	_, _ = h.Conversation(ctx, "conv_1")
	_, _ = h.ConversationByKey(ctx, "p", "k")
	_, _ = h.Update(ctx, "conv_1", continuo.ConversationChange{})
	_, _ = h.Receipt(ctx, "conv_1", "k")
	_, _ = h.AdvanceReceipt(ctx, "conv_1", continuo.Receipt{})
	_, _ = h.TakeTurn(ctx, continuo.Turn{}, "owner", time.Second)
	_, _ = h.Runs(ctx, continuo.RunQuery{})
	_, _ = h.TakeLease(ctx, "name", "owner", 0)
	turn.End()
	if spans := h.spans.GetSpans(); len(spans) != 1 {
		t.Errorf("%d spans, want the turn's alone", len(spans))
	}
	got := h.durations()
	for operation, times := range map[string]uint64{"create": 1, "conversation": 2, "update": 1, "receipt": 1, "advance_receipt": 1, "take_turn": 1, "runs": 1, "take_lease": 1} {
		if labels := "db.operation.name=" + operation + ",db.system.name=sqlite,error.type=not_found"; got[labels] != times || len(got) != 8 {
			t.Errorf("%s: %v", operation, got)
		}
	}
}

func TestDurationsAreMeasuredWithoutASpan(t *testing.T) {
	h := newHouse(t, nil)
	h.everything(false)
	if spans := h.spans.GetSpans(); len(spans) != 0 {
		t.Errorf("%d spans that stand under none", len(spans))
	}
	got := h.durations()
	for _, operation := range []string{"append", "entries", "begin_turn", "update_turn"} {
		if got["db.operation.name="+operation+",db.system.name=sqlite"] != 1 || len(got) != 4 {
			t.Errorf("%s: %v", operation, got)
		}
	}
}

func TestHowItFails(t *testing.T) {
	for want, err := range map[string]error{
		"conflict":   fmt.Errorf("append: %w", &continuo.ConflictError{}),
		"lease_lost": fmt.Errorf("append: %w", continuo.ErrLeaseLost),
		"busy":       &continuo.BusyError{},
		"full":       continuo.ErrFull,
		"archived":   fmt.Errorf("append: %w", continuo.ErrArchived),
		"cancelled":  context.Canceled,
		"_OTHER":     errors.New("near my secret: syntax error"),
	} {
		h := newHouse(t, err)
		h.everything(true)
		failed := h.spans.GetSpans()[0]
		set := attribute.NewSet(failed.Attributes...)
		if kind, _ := set.Value(span.ErrorType); kind.AsString() != want || failed.Status.Code != codes.Error || failed.Status.Description != want {
			t.Errorf("%v: %+v", err, failed)
		}
		if got := h.durations(); got["db.operation.name=append,db.system.name=sqlite,error.type="+want] != 1 {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// notifying is a store that reports one change.
type notifying struct{ continuo.Store }

func (notifying) WatchChanges(_ context.Context, changed func([]string), lost func()) {
	changed([]string{"a"})
	lost()
}

func TestChangesAreReportedIfTheStoreReportsThem(t *testing.T) {
	if _, ok := trace.New(scripted{}, trace.Options{}).(continuo.ChangeNotifier); ok {
		t.Error("a store that reports no changes is taken for one that does")
	}
	notifier, ok := trace.New(notifying{}, trace.Options{}).(continuo.ChangeNotifier)
	if !ok {
		t.Fatal("the changes that the store reports are not passed on")
	}
	reported := ""
	notifier.WatchChanges(t.Context(), func(ids []string) { reported += strings.Join(ids, " ") }, func() { reported += " lost" })
	if reported != "a lost" {
		t.Errorf("it reported %q", reported)
	}
}

// TestTheSuiteHoldsThroughIt: without a tracer and a meter, as most programs run.
func TestTheSuiteHoldsThroughIt(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "a.db")
		return func(t *testing.T) maintenance.Store {
			store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return traced{trace.New(store, trace.Options{}), store, store, store, store, store}
		}
	})
}

// traced is an engine whose log operations are traced.
type traced struct {
	continuo.Store
	continuo.PrefixStore
	auth.KeyStore
	auditStore
	maintenance.RecordStore
	indexStore
}

type indexStore interface{ index.Store }

type auditStore interface{ audit.Store }
