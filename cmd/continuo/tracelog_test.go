package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestLogLinesLeadToTheirTrace(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(traceLog{Handler: slog.NewTextHandler(&out, nil)}).With("turn_id", "turn_1")
	under := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{7: 2}})
	logger.InfoContext(trace.ContextWithSpanContext(t.Context(), under), "under", "n", 1)
	logger.InfoContext(t.Context(), "alone")
	logger.WithGroup("g").With("a", 1).InfoContext(t.Context(), "grouped", "b", 2)
	lines := strings.Split(out.String(), "\n")
	if want := "msg=under turn_id=turn_1 n=1 trace_id=00000000000000000000000000000001 span_id=0000000000000002"; !strings.HasSuffix(lines[0], want) {
		t.Errorf("got %s", lines[0])
	}
	if !strings.HasSuffix(lines[1], "msg=alone turn_id=turn_1") {
		t.Errorf("got %s", lines[1])
	}
	if !strings.HasSuffix(lines[2], "msg=grouped turn_id=turn_1 g.a=1 g.b=2") {
		t.Errorf("got %s", lines[2])
	}
}
