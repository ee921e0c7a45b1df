package server

import (
	"net/http"

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

// endTrace ends the span of a request, named by its route. pattern begins with the method, except for requests without
// a route.
func endTrace(traced trace.Span, method, pattern string, status int) {
	if pattern != "none" {
		traced.SetName(pattern)
		traced.SetAttributes(attribute.String(span.HTTPRoute, pattern[len(method)+1:]))
	}
	traced.SetAttributes(attribute.Int(span.HTTPStatus, status))
	if status >= http.StatusInternalServerError {
		span.Fail(traced, http.StatusText(status))
	}
	traced.End()
}
