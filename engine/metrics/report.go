package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Report is what the metrics of a process say, for people to read. Its lists are sorted by name.
type Report struct {
	Stages    []StageReport
	Providers []ProviderReport
	Breakers  []BreakerReport
}

// StageReport is how long a stage of turns took; see stages. The quantiles are estimates from the histogram's buckets.
type StageReport struct {
	Stage         string
	Count         uint64
	P50, P95, P99 time.Duration
}

// ProviderReport counts the model requests of a provider.
type ProviderReport struct {
	Provider string
	Rounds   int64 // answers
	Retries  int64 // failed requests that were tried again
	Fallback int64 // rounds that used the fallback model
}

// BreakerReport is the state of an upstream's circuit breaker: 0 closed, 1 half open, 2 open.
type BreakerReport struct {
	Upstream string
	State    int
}

// ReadReport reads the series of [Metrics] from the registry that they are registered in. Stages that did not occur
// are left out.
func ReadReport(registry prometheus.Gatherer) (Report, error) {
	var report Report
	families, err := registry.Gather()
	if err != nil {
		return report, fmt.Errorf("read metrics: %w", err)
	}
	providers := map[string]*ProviderReport{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			switch family.GetName() {
			case "continuo_stage_seconds":
				if h := series.GetHistogram(); h.GetSampleCount() > 0 {
					report.Stages = append(report.Stages, StageReport{
						Stage: label(series, "stage"), Count: h.GetSampleCount(), P50: quantile(h, 0.5), P95: quantile(h, 0.95), P99: quantile(h, 0.99),
					})
				}
			case "continuo_breaker_state":
				report.Breakers = append(report.Breakers, BreakerReport{label(series, "upstream"), int(series.GetGauge().GetValue())})
			case "continuo_rounds_total":
				provider(providers, series).Rounds += count(series)
			case "continuo_retries_total":
				provider(providers, series).Retries += count(series)
			case "continuo_fallbacks_total":
				provider(providers, series).Fallback += count(series)
			}
		}
	}
	for _, one := range providers {
		report.Providers = append(report.Providers, *one)
	}
	slices.SortFunc(report.Providers, func(a, b ProviderReport) int { return cmp.Compare(a.Provider, b.Provider) })
	return report, nil
}

func provider(all map[string]*ProviderReport, series *dto.Metric) *ProviderReport {
	name := label(series, "provider")
	if all[name] == nil {
		all[name] = &ProviderReport{Provider: name}
	}
	return all[name]
}

func count(series *dto.Metric) int64 { return int64(series.GetCounter().GetValue()) }

func label(series *dto.Metric, name string) string {
	for _, pair := range series.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// quantile estimates a quantile as Prometheus does: linearly within the bucket that it is in. What is above the last
// bound counts as the last bound (https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile).
func quantile(h *dto.Histogram, q float64) time.Duration {
	rank := q * float64(h.GetSampleCount())
	lower, below := 0.0, 0.0
	for _, bucket := range h.GetBucket() {
		upper, upTo := bucket.GetUpperBound(), float64(bucket.GetCumulativeCount())
		if upTo >= rank && !math.IsInf(upper, 1) {
			share := 1.0
			if upTo > below {
				share = (rank - below) / (upTo - below)
			}
			return time.Duration((lower + (upper-lower)*share) * float64(time.Second))
		}
		if !math.IsInf(upper, 1) {
			lower, below = upper, upTo
		}
	}
	return time.Duration(lower * float64(time.Second))
}
