package api

import (
	"context"

	continuo "github.com/continuo-log/continuo"
)

// HealthStatus is the result of a check.
type HealthStatus string

// The statuses.
const (
	HealthOK      HealthStatus = "ok"
	HealthWarning HealthStatus = "warning" // it works, but something should be changed
	HealthFailed  HealthStatus = "failed"
)

// HealthCheck is one finding about the program's settings, store, models or tools.
type HealthCheck struct {
	Name   string       `json:"name"` // what was checked, such as store
	Status HealthStatus `json:"status" enum:"ok,warning,failed"`
	Detail string       `json:"detail"` // for people
}

// StageLatency is how long a stage of turns takes in this process; docs/observability.md lists the stages.
type StageLatency struct {
	Stage string `json:"stage"`
	Count int64  `json:"count"` // since the process started
	// Milliseconds, estimated from a histogram.
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	P99 float64 `json:"p99_ms"`
}

// ProviderHealth counts the model requests of a provider since the process started.
type ProviderHealth struct {
	Provider  string `json:"provider"`
	Rounds    int64  `json:"rounds"`    // answers
	Retries   int64  `json:"retries"`   // failed requests that were tried again
	Fallbacks int64  `json:"fallbacks"` // rounds that used the fallback model
}

// BreakerHealth is the state of an upstream's circuit breaker: while it is open, nothing is requested there.
type BreakerHealth struct {
	Upstream string `json:"upstream"`
	State    string `json:"state" enum:"closed,half_open,open"`
}

// StoreSize is what the log takes.
type StoreSize struct {
	Engine string `json:"engine" enum:"sqlite,postgresql"`
	Bytes  int64  `json:"bytes"` // attachments in objects apart
}

// HealthReport is the state of a server.
type HealthReport struct {
	OK        bool             `json:"ok"` // no check failed
	Version   string           `json:"version"`
	Checks    []HealthCheck    `json:"checks"`
	Store     *StoreSize       `json:"store" nullable:"true"` // null where it is not known
	Stages    []StageLatency   `json:"stages"`
	Providers []ProviderHealth `json:"providers"`
	Breakers  []BreakerHealth  `json:"breakers"`
}

// ReportHealth reports what doctor checks, and how the process does.
//
// The checks are those of `continuo doctor`, made by the running server and kept for some seconds; nothing is requested
// from models. Latencies and counts are this process's, since it started; other replicas have their own.
func (s *Service) ReportHealth(ctx context.Context, _ continuo.Scope, _ Nothing) (HealthReport, error) {
	return s.Diagnose(ctx)
}
