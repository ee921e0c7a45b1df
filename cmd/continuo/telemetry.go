package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/model"
	modeltrace "github.com/continuo-log/continuo/model/trace"
	storetrace "github.com/continuo-log/continuo/store/trace"
	"github.com/continuo-log/continuo/tool"
	tooltrace "github.com/continuo-log/continuo/tool/trace"
)

// telemetry is the destination of spans and of the metrics of the conventions. The zero value does nothing.
type telemetry struct {
	tracer trace.Tracer // nil: no spans are made
	// ids is the tracer, or one whose spans are never recorded: events of the log have a trace id in any case.
	ids   trace.Tracer
	meter metric.Meter // nil: no such metrics are made
	text  bool

	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	giveUp  context.CancelFunc // cancels exports in progress
}

// newTelemetry makes the providers that the settings and the standard variables of OpenTelemetry configure. Metrics are
// on the registry too, unless it is nil. It does not fail: errors are logged, and the program runs without telemetry.
func newTelemetry(settings config.TelemetryConfig, env []string, registry prometheus.Registerer, logger *slog.Logger) *telemetry {
	life, giveUp := context.WithCancel(context.Background())
	b := telemetryBuilder{settings: settings, env: env, logger: logger, life: life}
	t := &telemetry{text: settings.MessageText, giveUp: giveUp}
	if b.traces(); b.tracing != nil {
		t.traces = sdktrace.NewTracerProvider(b.tracing...)
		t.tracer = t.traces.Tracer(span.Scope, trace.WithInstrumentationVersion(readVersion().Version))
		t.ids = t.tracer
	} else {
		t.ids = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer(span.Scope)
	}
	if b.metrics(registry); b.metering != nil {
		t.metrics = sdkmetric.NewMeterProvider(append(b.metering, sdkmetric.WithResource(b.resource()))...)
		t.meter = t.metrics.Meter(span.Scope, metric.WithInstrumentationVersion(readVersion().Version))
	}
	return t
}

// model wraps tracing of requests around a model with its retries, limits and breaker.
func (t *telemetry) model(m model.Model) model.Model {
	if t.tracer == nil && t.meter == nil {
		return m
	}
	return modeltrace.New(m, modeltrace.Options{Tracer: t.tracer, Meter: t.meter, MessageText: t.text})
}

// attempts wraps tracing of single attempts around a model, inside of its retries.
func (t *telemetry) attempts(m model.Model) model.Model {
	if t.tracer == nil {
		return m
	}
	return modeltrace.Attempts{Model: m}
}

// tools wraps tracing of calls around the tools of a source.
func (t *telemetry) tools(source tool.Source) tool.Source {
	if t.tracer == nil {
		return source
	}
	return tooltrace.NewSource(source, tooltrace.Options{Tracer: t.tracer, MessageText: t.text})
}

// store wraps tracing of operations around a store; the system is sqlite or postgresql.
func (t *telemetry) store(store continuo.Store, system string) continuo.Store {
	if t.tracer == nil && t.meter == nil {
		return store
	}
	return storetrace.New(store, storetrace.Options{Tracer: t.tracer, Meter: t.meter, System: system})
}

// flushTime is how long the end of the program may wait for a collector.
const flushTime = 3 * time.Second

// Close sends what has not been sent yet, until ctx is done or flushTime is over. It returns when no export runs any
// more, and may be called twice.
func (t *telemetry) Close(ctx context.Context) {
	if t.giveUp == nil {
		return
	}
	defer t.giveUp()
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	stop := context.AfterFunc(ctx, t.giveUp)
	defer stop()
	// The providers are not given ctx: they would return when it is done and leave their goroutines behind. giveUp ends
	// the exports, which log their failures themselves.
	all := context.WithoutCancel(ctx)
	if t.traces != nil {
		_ = t.traces.Shutdown(all)
	}
	if t.metrics != nil {
		_ = t.metrics.Shutdown(all)
	}
}

// telemetryBuilder gathers the options of the providers.
type telemetryBuilder struct {
	settings config.TelemetryConfig
	env      []string
	logger   *slog.Logger
	life     context.Context // the context of exports

	tracing  []sdktrace.TracerProviderOption
	metering []sdkmetric.Option
}

// exportTime bounds one export with its retries; heldSpans and heldTextSpans bound how many spans are queued before
// further ones are dropped.
const (
	exportTime    = 10 * time.Second
	heldSpans     = 2048
	heldTextSpans = 256
)

func (b *telemetryBuilder) traces() {
	target := b.target("TRACES", "/v1/traces")
	if target == "" {
		return
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(target), otlptracehttp.WithHeaders(b.headers()))
	if err != nil {
		b.off("traces", err)
		return
	}
	held := heldSpans
	if b.settings.MessageText {
		held = heldTextSpans
	}
	b.tracing = []sdktrace.TracerProviderOption{
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(b.settings.Sample))),
		sdktrace.WithResource(b.resource()),
		sdktrace.WithBatcher(spanExporter{exporter, b.outbox("traces")}, sdktrace.WithExportTimeout(exportTime),
			sdktrace.WithMaxQueueSize(held), sdktrace.WithMaxExportBatchSize(min(held, 512))),
	}
}

func (b *telemetryBuilder) metrics(registry prometheus.Registerer) {
	if registry != nil {
		exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo(),
			otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
		if err != nil {
			b.off("prometheus", err)
		} else {
			b.metering = append(b.metering, sdkmetric.WithReader(exporter))
		}
	}
	target := b.target("METRICS", "/v1/metrics")
	if target == "" {
		return
	}
	exporter, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpointURL(target), otlpmetrichttp.WithHeaders(b.headers()))
	if err != nil {
		b.off("metrics", err)
		return
	}
	reader := sdkmetric.NewPeriodicReader(metricExporter{exporter, b.outbox("metrics")}, sdkmetric.WithTimeout(exportTime))
	b.metering = append(b.metering, sdkmetric.WithReader(reader))
}

// target is the address for a signal, "" for none: below the setting's, or from the variables.
func (b *telemetryBuilder) target(signal, path string) string {
	if b.settings.OTLPEndpoint != "" {
		return b.settings.OTLPEndpoint + path
	}
	if strings.EqualFold(envValue(b.env, "OTEL_SDK_DISABLED"), "true") {
		return ""
	}
	given := envValue(b.env, "OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT")
	if base := envValue(b.env, "OTEL_EXPORTER_OTLP_ENDPOINT"); given == "" && base != "" {
		given = strings.TrimRight(base, "/") + path
	}
	if given == "" {
		return ""
	}
	location, err := url.Parse(given)
	protocol := cmp.Or(envValue(b.env, "OTEL_EXPORTER_OTLP_"+signal+"_PROTOCOL"), envValue(b.env, "OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	switch {
	case protocol != "http/protobuf":
		b.off(strings.ToLower(signal), fmt.Errorf("the environment asks for the protocol %q; there is http/protobuf only", protocol))
		return ""
	case err != nil || location.Host == "" || location.Scheme != "http" && location.Scheme != "https":
		b.off(strings.ToLower(signal), fmt.Errorf("the variables OTEL_EXPORTER_OTLP_*ENDPOINT hold no http or https URL"))
		return ""
	}
	return given
}

// headers reads the variable with the headers: name=value pairs between commas, percent-encoded.
func (b *telemetryBuilder) headers() map[string]string {
	headers := map[string]string{}
	for pair := range strings.SplitSeq(envValue(b.env, b.settings.OTLPHeadersEnv), ",") {
		name, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); ok && err == nil && name != "" {
			headers[name] = decoded
		}
	}
	return headers
}

// resource describes the sender; the standard variables may override it.
func (b *telemetryBuilder) resource() *resource.Resource {
	all, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "continuo"), attribute.String("service.version", readVersion().Version),
	), resource.WithFromEnv())
	if err != nil {
		b.logger.Warn("telemetry_resource", "error", err.Error()) // it has what could be read
	}
	return all
}

func (b *telemetryBuilder) outbox(signal string) *outbox {
	return &outbox{signal: signal, logger: b.logger, life: b.life}
}

func (b *telemetryBuilder) off(signal string, err error) {
	b.logger.Warn("telemetry_off", "signal", signal, "error", err.Error())
}
