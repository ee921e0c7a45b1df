package server

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/continuo-log/continuo/internal/span"
)

// trace begins the span of a request, as a child of the caller's if the header traceparent (W3C Trace Context) names one.
func (s *server) trace(r *http.Request) (*http.Request, trace.Span) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, traced := span.Start(ctx, s.options.Tracer, r.Method, trace.SpanKindServer, attribute.String(span.HTTPMethod, r.Method))
	return r.WithContext(ctx), traced
}

// endTrace ends the span of a request, named by its route. The pattern of a route is a method and a path; of a request
// without a route it is "none".
func endTrace(traced trace.Span, pattern string, status int) {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		traced.SetName(pattern)
		traced.SetAttributes(attribute.String(span.HTTPRoute, path))
	}
	traced.SetAttributes(attribute.Int(span.HTTPStatus, status))
	if status >= http.StatusInternalServerError {
		span.Fail(traced, http.StatusText(status))
	}
	traced.End()
}
