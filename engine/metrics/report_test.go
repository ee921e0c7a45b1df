package metrics_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/turn"
)

func TestReport(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.NewMetrics(registry)
	for range 98 {
		m.Stage(context.Background(), turn.StageTool, 1500*time.Microsecond) // in the bucket from 1 to 2.5 ms
	}
	m.Stage(context.Background(), turn.StageTool, 40*time.Minute) // above the last bound, 600 s
	m.Stage(context.Background(), turn.StageTool, 40*time.Minute)
	m.Answered(&continuo.Entry{Round: &continuo.Round{Provider: "openai", FinishReason: "stop"}})
	m.Answered(&continuo.Entry{Round: &continuo.Round{Provider: "openai", FinishReason: "length"}})
	m.Retried("openai", continuo.ReasonTimeout)
	m.Answered(&continuo.Entry{Round: &continuo.Round{Provider: "anthropic"}})
	m.BreakerState("a", 2)
	m.BreakerState("b", 0)

	got, err := metrics.ReadReport(registry)
	if err != nil {
		t.Fatal(err)
	}
	want := metrics.Report{
		Stages: []metrics.StageReport{{
			Stage: "tool", Count: 100,
			P50: time.Millisecond + 1500*time.Microsecond*50/98, P95: time.Millisecond + 1500*time.Microsecond*95/98, P99: 600 * time.Second,
		}},
		Providers: []metrics.ProviderReport{{Provider: "anthropic", Rounds: 1}, {Provider: "openai", Rounds: 2, Retries: 1}},
		Breakers:  []metrics.BreakerReport{{Upstream: "a", State: 2}, {Upstream: "b"}},
	}
	for i := range got.Stages { // they are computed with floats
		got.Stages[i].P50 = got.Stages[i].P50.Round(time.Microsecond)
		got.Stages[i].P95 = got.Stages[i].P95.Round(time.Microsecond)
		want.Stages[i].P50 = want.Stages[i].P50.Round(time.Microsecond)
		want.Stages[i].P95 = want.Stages[i].P95.Round(time.Microsecond)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if empty, err := metrics.ReadReport(prometheus.NewRegistry()); err != nil || !reflect.DeepEqual(empty, metrics.Report{}) {
		t.Errorf("got %+v, %v", empty, err)
	}
}
