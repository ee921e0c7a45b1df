package main

import (
	"context"
	"log/slog"
	"sync/atomic"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// outbox is what exports have in common: they end with the program, and failures are logged when they begin and when
// they are over, not each time.
type outbox struct {
	signal  string
	logger  *slog.Logger
	life    context.Context
	failing atomic.Bool
}

// send exports. It returns no error, since the callers would only print it.
func (o *outbox) send(ctx context.Context, export func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(o.life, cancel)
	defer stop()
	err := export(ctx)
	switch failed := err != nil; {
	case o.failing.Swap(failed) == failed:
	case failed:
		o.logger.Warn("telemetry_export_failed", "signal", o.signal, "error", err.Error())
	default:
		o.logger.Info("telemetry_export_recovered", "signal", o.signal)
	}
	return nil
}

// spanExporter sends spans through an outbox.
type spanExporter struct {
	sdktrace.SpanExporter
	outbox *outbox
}

// ExportSpans sends spans; see [sdktrace.SpanExporter].
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return e.outbox.send(ctx, func(ctx context.Context) error { return e.SpanExporter.ExportSpans(ctx, spans) })
}

// metricExporter sends metrics through an outbox.
type metricExporter struct {
	sdkmetric.Exporter
	outbox *outbox
}

// Export sends metrics; see [sdkmetric.Exporter].
func (e metricExporter) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	return e.outbox.send(ctx, func(ctx context.Context) error { return e.Exporter.Export(ctx, data) })
}
