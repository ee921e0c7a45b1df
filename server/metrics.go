package server

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests by route: no label has a value that a client can choose.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

// newMetrics creates the series and registers them; servers that share a registry share the series.
func newMetrics(registry *prometheus.Registry) *metrics {
	return &metrics{
		requests: register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "continuo_http_requests_total", Help: "HTTP requests, by method, route and status.",
		}, []string{"method", "route", "status"})),
		seconds: register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "continuo_http_request_seconds", Help: "How long HTTP requests took, streams to their end.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 30, 120, 600},
		}, []string{"route"})),
	}
}

// register adds a series to a registry, or returns the existing one.
func register[T prometheus.Collector](registry *prometheus.Registry, series T) T {
	var there prometheus.AlreadyRegisteredError
	if err := registry.Register(series); errors.As(err, &there) {
		if existing, ok := there.ExistingCollector.(T); ok {
			return existing
		}
	}
	return series
}

func (m *metrics) answered(method, route string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodDelete:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}
