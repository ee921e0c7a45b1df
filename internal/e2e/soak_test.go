package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// soakClients have a conversation of their own each, and begin another one after so many turns: short conversations and
// long ones are there at any time.
const (
	soakClients = 64
	soakTurns   = 60
)

// BenchmarkSoak runs turns for CONTINUO_SOAK (such as 30m): first as many as the server makes, for a tenth of the time,
// to find the highest rate; then two thirds of that. It fails if a turn fails, or if the server's memory grows: each
// quarter of the time is represented by the median of its samples, and the last one may be above the second by a
// tenth and 16 MiB, or in a run of less than five minutes, in which the caches fill, 64 MiB. CONTINUO_SOAK_STORE=postgresql
// takes the other store; the server has the GOMEMLIMIT of the benchmark.
func BenchmarkSoak(b *testing.B) {
	length, err := time.ParseDuration(os.Getenv("CONTINUO_SOAK"))
	if err != nil || length < 10*time.Second {
		b.Skip("SKIPPED: set CONTINUO_SOAK to a duration of at least 10s; make soak does")
	}
	store := os.Getenv("CONTINUO_SOAK_STORE")
	if store == "" {
		store = "sqlite"
	}
	upstream := metronome{tokens: 4}.start(b)
	s := serve(b, "model: m\nmodels:\n"+modelSettings("m", "chat", upstream.URL)+"log:\n  level: warn\n"+storeSettings(b, store))
	for b.Loop() {
		highest := soak(b, s, min(length/10, 30*time.Second), 0, func() {})
		var samples []usage
		rate := soak(b, s, length, 2*highest/3, func() { samples = append(samples, s.usage(b)) })
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(highest, "highest-turns/s")
		b.ReportMetric(rate, "turns/s")
		b.ReportMetric((samples[len(samples)-1].cpu-samples[0].cpu)*1e6/(rate*length.Seconds()), "cpu-us/turn")
		reportSoak(b, samples, length)
	}
}

// reportSoak reports the memory and goroutines of each quarter and fails if they grew.
func reportSoak(b *testing.B, samples []usage, length time.Duration) {
	b.Helper()
	const mebibyte = 1 << 20
	var rss, goroutines [4]float64
	for quarter := range rss {
		part := samples[quarter*len(samples)/len(rss) : (quarter+1)*len(samples)/len(rss)]
		if len(part) == 0 {
			b.Fatalf("%d samples are too few", len(samples))
		}
		rss[quarter] = middle(part, func(u usage) float64 { return u.rss }) / mebibyte
		goroutines[quarter] = middle(part, func(u usage) float64 { return u.goroutines })
		b.ReportMetric(rss[quarter], fmt.Sprintf("rss-MiB/quarter-%d", quarter+1))
	}
	slack := 16.0
	if length < 5*time.Minute {
		slack = 64
	}
	if most := rss[1]*1.1 + slack; rss[3] > most {
		b.Errorf("the memory grows: %.0f MiB in the quarters, more than %.0f", rss, most)
	}
	if goroutines[3] > goroutines[1]*1.5+soakClients {
		b.Errorf("the goroutines grow: %.0f in the quarters", goroutines)
	}
}

func middle(samples []usage, of func(usage) float64) float64 {
	values := make([]float64, len(samples))
	for i, sample := range samples {
		values[i] = of(sample)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// soak runs turns for a time, at a rate per second or, with 0, as fast as they are made, and calls look a hundred times
// meanwhile. It returns the rate that was reached.
func soak(b *testing.B, s server, length time.Duration, perSecond float64, look func()) float64 {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: soakClients}}
	defer client.CloseIdleConnections()
	begin, turns := time.Now(), atomic.Int64{}
	pace := rate.NewLimiter(rate.Inf, 1)
	if perSecond > 0 {
		pace.SetLimit(rate.Limit(perSecond))
	}
	var running sync.WaitGroup
	for i := range soakClients {
		running.Go(func() {
			for n := 0; time.Since(begin) < length && !b.Failed(); n++ {
				if err := pace.Wait(b.Context()); err != nil {
					b.Error(err)
					return
				}
				session := fmt.Sprintf("%d-%d-%d", begin.UnixNano(), i, n/soakTurns)
				if _, _, err := throughSession(s.url, "m", session).listen(b.Context(), client, nil); err != nil {
					b.Error(err)
					return
				}
				turns.Add(1)
			}
		})
	}
	samples := time.NewTicker(length / 100)
	defer samples.Stop()
	for range 100 {
		<-samples.C
		look()
	}
	running.Wait()
	return float64(turns.Load()) / time.Since(begin).Seconds()
}
