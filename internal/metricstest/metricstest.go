// Package metricstest reads metrics in tests.
package metricstest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Values reads a series: its labels' values and its value, or how many observations there are and their
// sum, without those that are zero.
func Values(t *testing.T, registry *prometheus.Registry, name string) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			words := []string{}
			for _, label := range metric.GetLabel() {
				words = append(words, label.GetValue())
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			observed := metric.GetHistogram().GetSampleCount()
			if observed > 0 {
				words, value = append(words, fmt.Sprint(observed)), metric.GetHistogram().GetSampleSum()
			}
			if value != 0 || observed > 0 {
				found = append(found, strings.Join(append(words, fmt.Sprint(value)), " "))
			}
		}
	}
	return found
}
