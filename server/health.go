package server

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// checksKept is how long the checks' answer is kept: they ask the database and the bucket.
const checksKept = 10 * time.Second

// checksLimit is how long the checks may take.
const checksLimit = 30 * time.Second

// health makes the report of GET /api/health. It is safe for concurrent use.
type health struct {
	options Options

	mu      sync.Mutex // held while the checks are made, so that callers share their answer
	checked time.Time
	checks  []api.HealthCheck
	store   *api.StoreSize
}

func (h *health) report(ctx context.Context) (api.HealthReport, error) {
	figures, err := engine.ReadReport(h.options.Registry)
	if err != nil {
		return api.HealthReport{}, err
	}
	report := api.HealthReport{
		OK: true, Version: h.options.Version, Checks: []api.HealthCheck{},
		Stages: []api.StageLatency{}, Providers: []api.ProviderHealth{}, Breakers: []api.BreakerHealth{},
	}
	checks, store := h.check(ctx)
	report.Checks, report.Store = append(report.Checks, checks...), store
	for _, check := range report.Checks {
		report.OK = report.OK && check.Status != api.HealthFailed
	}
	for _, s := range figures.Stages {
		report.Stages = append(report.Stages, api.StageLatency{Stage: s.Stage, Count: int64(s.Count), P50: milliseconds(s.P50), P95: milliseconds(s.P95), P99: milliseconds(s.P99)}) //nolint:gosec // no process makes so many turns
	}
	for _, p := range figures.Providers {
		report.Providers = append(report.Providers, api.ProviderHealth{Provider: p.Provider, Rounds: p.Rounds, Retries: p.Retries, Fallbacks: p.Fallback})
	}
	states := [...]string{"closed", "half_open", "open"}
	for _, b := range figures.Breakers {
		report.Breakers = append(report.Breakers, api.BreakerHealth{Upstream: b.Upstream, State: states[b.State]})
	}
	return report, nil
}

func (h *health) check(ctx context.Context) ([]api.HealthCheck, *api.StoreSize) {
	if h.options.Checks == nil {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checked) >= checksKept {
		// A caller that leaves must not spoil the answer of those who wait for it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checksLimit)
		defer cancel()
		h.checks, h.store = h.options.Checks(ctx)
		h.checked = time.Now()
	}
	return h.checks, h.store
}

// milliseconds converts a duration, to three significant digits or so: it is an estimate.
func milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Microsecond)) / 1000
}
