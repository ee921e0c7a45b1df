package trace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/model"
)

// meters are the metrics of one model's requests. Their attributes are the names in the settings only: an
// upstream could send any number of names of the model that answers.
type meters struct {
	duration, chunk metric.Float64Histogram
	tokens          metric.Int64Histogram

	operation, input, output metric.MeasurementOption
	attributes               []attribute.KeyValue
}

// newMeters creates the instruments. Their constant names and units never fail; with meter nil they do
// nothing.
func newMeters(meter metric.Meter, info model.Info, operation string) *meters {
	if meter == nil {
		meter = noop.Meter{}
	}
	seconds := metric.WithExplicitBucketBoundaries(.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
	m := &meters{attributes: []attribute.KeyValue{
		attribute.String(span.OperationName, operation),
		attribute.String(span.ProviderName, info.Provider),
		attribute.String(span.RequestModel, info.Name),
	}}
	m.duration, _ = meter.Float64Histogram(span.OperationDuration, metric.WithUnit("s"), seconds,
		metric.WithDescription("How long model requests took, retries included; with the operation open_session, how long agents took to begin or load a session."))
	m.chunk, _ = meter.Float64Histogram(span.OperationToFirstChunk, metric.WithUnit("s"), seconds,
		metric.WithDescription("How long models took to send the first piece of an answer."))
	m.tokens, _ = meter.Int64Histogram(span.TokenUsage, metric.WithUnit("{token}"),
		metric.WithDescription("Tokens of model requests, as providers reported them."),
		metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864))
	m.operation = m.with()
	m.input = m.with(attribute.String(span.TokenType, "input"))
	m.output = m.with(attribute.String(span.TokenType, "output"))
	return m
}

func (m *meters) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, m.attributes...)...))
}

func (m *meters) firstChunk(ctx context.Context, wait time.Duration) {
	m.chunk.Record(ctx, wait.Seconds(), m.operation)
}

func (m *meters) ended(ctx context.Context, took time.Duration, usage *continuo.Usage, err *model.Error) {
	operation := m.operation
	if err != nil {
		operation = m.with(attribute.String(span.ErrorType, string(err.Reason)))
	}
	m.duration.Record(ctx, took.Seconds(), operation)
	if usage != nil {
		m.tokens.Record(ctx, int64(usage.InputTokens), m.input)
		m.tokens.Record(ctx, int64(usage.OutputTokens), m.output)
	}
}
