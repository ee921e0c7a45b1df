package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
)

// collector is an OTLP receiver.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    map[string]*trace.Span // by name
	metrics  []string               // names
	resource map[string]string
	headers  http.Header
	raw      bytes.Buffer // everything that came
	hold     chan struct{}
	arrived  chan struct{} // has a value for each request
}

// newCollector makes one. With hold, requests are answered when it is closed.
func newCollector(t *testing.T, hold chan struct{}) *collector {
	c := &collector{spans: map[string]*trace.Span{}, hold: hold, arrived: make(chan struct{}, 100)}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Server.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.arrived <- struct{}{}
	if c.hold != nil {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	c.headers = r.Header
	switch r.URL.Path {
	case "/v1/traces":
		c.takeSpans(body)
	case "/v1/metrics":
		c.takeMetrics(body)
	default:
		http.NotFound(w, r)
	}
}

func (c *collector) takeSpans(body []byte) {
	var request collectortrace.ExportTraceServiceRequest
	if proto.Unmarshal(body, &request) != nil {
		return
	}
	for _, sent := range request.GetResourceSpans() {
		c.resource = texts(sent.GetResource().GetAttributes())
		for _, scope := range sent.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans[s.GetName()] = s
			}
		}
	}
}

func (c *collector) takeMetrics(body []byte) {
	var request collectormetrics.ExportMetricsServiceRequest
	if proto.Unmarshal(body, &request) != nil {
		return
	}
	for _, sent := range request.GetResourceMetrics() {
		for _, scope := range sent.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				c.metrics = append(c.metrics, m.GetName())
			}
		}
	}
}

func texts(attributes []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range attributes {
		all[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return all
}

// echo is a tool that gives its arguments back.
type echo struct{}

func (echo) Spec() continuo.ToolSpec { return continuo.ToolSpec{Name: "echo"} }
func (echo) Run(_ context.Context, call tool.Call) tool.Result {
	return tool.Result{Content: call.Arguments}
}

// aTurn does what a turn does: it asks a model, runs a tool and appends, under a span.
func aTurn(t *testing.T, tel *telemetry) {
	t.Helper()
	ctx := t.Context()
	end := func() {}
	if tel.tracer != nil {
		inside, turn := span.StartTurn(ctx, tel.tracer, "conv_1", "turn_1")
		span.SetMode(turn, "agent")
		ctx, end = inside, func() { turn.End() }
	}
	defer end()
	usage := modeltest.Step{}
	usage.Delta.Usage = &continuo.Usage{InputTokens: 10, OutputTokens: 2}
	m := tel.model(tel.attempts(&modeltest.Script{Answers: [][]modeltest.Step{{modeltest.Text("a hunter2 answer"), usage, modeltest.Finish()}}}))
	for _, err := range m.Stream(ctx, []byte(`{"messages":"a hunter2 question"}`)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	tel.tools(tool.Set{echo{}}).Tools(ctx)[0].Run(ctx, tool.Call{ID: "c1", Arguments: `{"a":"hunter2 argument"}`})
	store := tel.store(storetest.NewMemory(), "sqlite")
	if err := store.Create(ctx, continuo.Conversation{ID: "conv_1", ProjectID: "p"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Entries(ctx, "conv_1", continuo.EntryQuery{From: 1, To: 1, Limit: 1}); err != nil {
		t.Fatal(err)
	}
}

func collectorSettings(endpoint string) config.TelemetryConfig {
	return config.TelemetryConfig{OTLPEndpoint: endpoint, OTLPHeadersEnv: "OTEL_EXPORTER_OTLP_HEADERS", Sample: 1}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestACollectorGetsTheSpansOfATurn(t *testing.T) {
	c := newCollector(t, nil)
	tel := newTelemetry(collectorSettings(c.URL), []string{"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20k, x-tenant=ada"}, nil, discard())
	aTurn(t, tel)
	tel.Close(t.Context())
	tel.Close(t.Context())
	turn := c.spans["turn agent"]
	for _, name := range []string{"chat script", "execute_tool echo", "store entries"} {
		s := c.spans[name]
		if s == nil || turn == nil || !bytes.Equal(s.GetParentSpanId(), turn.GetSpanId()) || !bytes.Equal(s.GetTraceId(), turn.GetTraceId()) {
			t.Fatalf("%s: %v, the turn: %v", name, s, turn)
		}
		if got := texts(s.GetAttributes()); got[span.ConversationID] != "conv_1" || got[span.TurnID] != "turn_1" {
			t.Errorf("%s carries %v", name, got)
		}
	}
	for _, name := range []string{span.OperationDuration, span.OperationToFirstChunk, span.TokenUsage, span.StoreOperationDuration} {
		if !slices.Contains(c.metrics, name) {
			t.Errorf("there is no metric %s among %v", name, c.metrics)
		}
	}
	if c.resource["service.name"] != "continuo" || c.resource["service.version"] == "" {
		t.Errorf("the resource: %v", c.resource)
	}
	if c.headers.Get("Authorization") != "Bearer k" || c.headers.Get("X-Tenant") != "ada" || c.headers.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("the headers: %v", c.headers)
	}
}

func TestMessageTextStaysUnlessItIsAskedFor(t *testing.T) {
	for _, asked := range []bool{false, true} {
		c := newCollector(t, nil)
		settings := collectorSettings(c.URL)
		settings.MessageText = asked
		tel := newTelemetry(settings, nil, nil, discard())
		aTurn(t, tel)
		tel.Close(t.Context())
		for _, text := range []string{"hunter2 question", "hunter2 answer", "hunter2 argument"} {
			if got := strings.Contains(c.raw.String(), text); got != asked {
				t.Errorf("message_text %v: %q was sent: %v", asked, text, got)
			}
		}
		if len(c.spans) == 0 {
			t.Error("no spans came")
		}
	}
}

// TestADeadCollectorHoldsNothingUp: turns go on while the collector answers nothing, more of them than can
// be held, and the end of the program gives up.
func TestADeadCollectorHoldsNothingUp(t *testing.T) {
	hold := make(chan struct{})
	c := newCollector(t, hold)
	settings := collectorSettings(c.URL)
	settings.MessageText = true // holds the fewest spans
	var log bytes.Buffer
	tel := newTelemetry(settings, nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 * heldTextSpans {
		aTurn(t, tel)
	}
	<-c.arrived // the collector has something, and keeps it
	done, cancel := context.WithCancel(t.Context())
	cancel()
	tel.Close(done)
	close(hold)
	if !strings.Contains(log.String(), "telemetry_export_failed") || !strings.Contains(log.String(), context.Canceled.Error()) {
		t.Errorf("the export did not end with the program: %s", log.String())
	}
}

func TestFailedExportsAreLoggedOnceAndRecoveryToo(t *testing.T) {
	var log bytes.Buffer
	box := &outbox{signal: "traces", logger: slog.New(slog.NewTextHandler(&log, nil)), life: t.Context()}
	for _, err := range []error{nil, io.EOF, io.EOF, nil, nil, io.EOF} {
		if got := box.send(t.Context(), func(context.Context) error { return err }); got != nil {
			t.Errorf("the caller got %v", got)
		}
	}
	var events []string
	for line := range strings.Lines(log.String()) {
		_, event, _ := strings.Cut(line, "msg=")
		event, _, _ = strings.Cut(event, " ")
		events = append(events, event)
	}
	if want := []string{"telemetry_export_failed", "telemetry_export_recovered", "telemetry_export_failed"}; !slices.Equal(events, want) {
		t.Errorf("logged %v", events)
	}
}

func TestWhereTelemetryGoes(t *testing.T) {
	for _, test := range []struct {
		setting string
		env     []string
		traces  string
		metrics string
	}{
		{"", nil, "", ""},
		{"http://a:1", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://b:1", "OTEL_SDK_DISABLED=true"}, "http://a:1/v1/traces", "http://a:1/v1/metrics"},
		{"", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://b:1/x/"}, "http://b:1/x/v1/traces", "http://b:1/x/v1/metrics"},
		{"", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://b:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c/t"}, "https://c/t", "http://b:1/v1/metrics"},
		{"", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://b:1", "OTEL_SDK_DISABLED=true"}, "", ""},
		{"", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://b:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "", ""},
		{"", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=b:4318"}, "", ""},
	} {
		b := telemetryBuilder{settings: collectorSettings(test.setting), env: test.env, logger: discard()}
		if traces, metrics := b.target("TRACES", "/v1/traces"), b.target("METRICS", "/v1/metrics"); traces != test.traces || metrics != test.metrics {
			t.Errorf("%q, %v: to %q and %q", test.setting, test.env, traces, metrics)
		}
	}
}

func TestWithoutACollector(t *testing.T) {
	registry := prometheus.NewRegistry()
	tel := newTelemetry(collectorSettings(""), nil, registry, discard())
	if tel.tracer != nil || tel.attempts(nil) != nil {
		t.Error("spans are made without an exporter")
	}
	aTurn(t, tel)
	families, err := registry.Gather()
	if err != nil || len(families) != 4 {
		t.Errorf("%d families, %v", len(families), err)
	}
	for _, family := range families {
		for _, label := range family.GetMetric()[0].GetLabel() {
			if name := label.GetName(); strings.Contains(name, "conversation") || strings.Contains(name, "turn") || strings.HasPrefix(name, "otel_") {
				t.Errorf("%s has the label %s", family.GetName(), name)
			}
		}
	}
	tel.Close(t.Context())
	nothing := &telemetry{}
	aTurn(t, nothing)
	nothing.Close(t.Context())
}

func TestSampling(t *testing.T) {
	c := newCollector(t, nil)
	settings := collectorSettings(c.URL)
	settings.Sample = 0
	tel := newTelemetry(settings, nil, nil, discard())
	aTurn(t, tel)
	tel.Close(t.Context())
	if len(c.spans) != 0 || !slices.Contains(c.metrics, span.OperationDuration) {
		t.Errorf("%d spans, metrics %v", len(c.spans), c.metrics)
	}
}
