package start

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/internal/logtext"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// meter records the engine's metrics, and a span for each build: the other stages have spans of their own.
type meter struct {
	*metrics.Metrics
	tracer trace.Tracer
}

// Stage is part of [turn.Meter].
func (m meter) Stage(ctx context.Context, stage turn.Stage, took time.Duration) {
	m.Metrics.Stage(ctx, stage, took)
	if stage == turn.StageBuild {
		now := time.Now()
		_, built := m.tracer.Start(ctx, "build context", trace.WithTimestamp(now.Add(-took)), trace.WithAttributes(span.Carried(ctx)...))
		built.End(trace.WithTimestamp(now))
	}
}

// withSession adds the conversation's key to the log events and traces of a context.
func withSession(ctx context.Context, conversation continuo.Conversation) context.Context {
	if conversation.Key == "" {
		return ctx
	}
	return span.With(ctx, attribute.String(span.SessionID, conversation.Key))
}

func turnLogger(logger *slog.Logger, t continuo.Turn) *slog.Logger {
	return logger.With("conversation_id", t.ConversationID, "turn_id", t.ID)
}

// observe logs and counts the events of a turn.
func (ts *Turns) observe(ctx context.Context, t continuo.Turn, event turn.Event, took time.Duration) {
	switch event.Kind {
	case turn.TextDelta, turn.ReasoningDelta, turn.CallDelta: // thousands per turn: not logged
		return
	case turn.Finished, turn.Failed:
		ts.lanes.ended(t.ConversationID, t.ID)
	}
	logger := turnLogger(ts.options.Logger, t)
	switch event.Kind {
	case turn.Planned:
		ts.metrics.Planned(event.Plan)
		logContext(ctx, logger.With("session_id", cmp.Or(span.Value(ctx, span.SessionID), t.ConversationID)), event.Plan)
	case turn.Rephrased:
		refused := event.Attempt
		logger.WarnContext(ctx, "request_rephrased", "provider", refused.Round.Provider, "model", refused.Round.Model, "error", ts.failureForLog(refused.Round, refused.Error))
	case turn.FellBack:
		failed := event.Attempt
		ts.metrics.FellBack(failed)
		logger.WarnContext(ctx, "model_fell_back", "provider", failed.Round.Provider, "model", failed.Round.Model, "reason", failed.Error.Reason, "error", ts.failureForLog(failed.Round, failed.Error))
	case turn.Answered:
		ts.metrics.Answered(event.Entry)
	case turn.Finished:
		ts.metrics.TurnEnded("finished", took)
		attributes := []any{"duration_ms", took.Milliseconds(), "input_tokens", event.Usage.InputTokens, "output_tokens", event.Usage.OutputTokens}
		if ts.options.LogText {
			attributes = append(attributes, "response", event.Entry.Content.String())
		}
		logger.InfoContext(ctx, "turn_finished", attributes...)
	case turn.Failed:
		ts.metrics.TurnEnded(string(event.Entry.Error.Reason), took)
		span.Fail(trace.SpanFromContext(ctx), string(event.Entry.Error.Reason))
		logger.WarnContext(ctx, "turn_failed", "reason", event.Entry.Error.Reason, "error", ts.failureForLog(event.Entry.Round, event.Entry.Error), "provider_status", event.Entry.Error.ProviderStatus)
	case turn.Started:
		if ts.options.LogText && event.Entry != nil {
			logger.InfoContext(ctx, "turn_started", "message", event.Entry.Content.String())
		}
	}
}

// failureForLog is a failure's text for a log event.
func (ts *Turns) failureForLog(round *continuo.Round, failure *continuo.TurnError) string {
	return logtext.Failure(ts.options.LogText, round != nil && ts.catalog.IsProgram(round.Provider), failure)
}

// logContext logs what a request shows, with the field names of the continuity service: entries that are not shown,
// because they were dropped or replaced by a summary, count as truncated. Entries for people only are not counted.
func logContext(ctx context.Context, logger *slog.Logger, plan *window.Plan) {
	logger.InfoContext(ctx, "conversation_context_loaded",
		"view", plan.View,
		"total_messages_in_db", plan.Totals.Entries-plan.Totals.Excluded,
		"messages_loaded", plan.Totals.Kept,
		"messages_truncated", plan.Totals.Dropped+plan.Totals.Summarized,
		"estimated_tokens", plan.Totals.Tokens,
		"epoch", plan.Window.Epoch,
		"moved", plan.Moved,
	)
	for _, missing := range plan.Missing {
		if missing.Problem == continuo.PartUnsupported {
			logger.WarnContext(ctx, "part_not_sent", "seq", missing.Seq, "part", missing.Part, "type", missing.Type)
			continue
		}
		logger.WarnContext(ctx, "attachment_missing", "seq", missing.Seq, "part", missing.Part, "object", missing.Object, "problem", missing.Problem, "error", missing.Err)
	}
}
