package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkStreams runs CONTINUO_STREAMS streaming turns at once, each of a conversation of its own, through
// the server, and as many through a plain reverse proxy before. Reported are the memory and goroutines per
// stream of both, beyond those that they have without any, their processor time per token, and how long
// tokens were under way while all streams ran: the quantiles of all of them, and, since what else a machine does
// shows there, the medians of each second's quantiles (steady). Without the variable it is skipped: a thousand streams keep a machine busy for a while.
func BenchmarkStreams(b *testing.B) { benchmarkStreams(b, through) }

// BenchmarkGatewayStreams is BenchmarkStreams for requests that the gateway forwards.
func BenchmarkGatewayStreams(b *testing.B) { benchmarkStreams(b, forwarded) }

func benchmarkStreams(b *testing.B, through func(url, model string) listener) {
	streams, err := strconv.Atoi(os.Getenv("CONTINUO_STREAMS"))
	if err != nil || streams < 1 {
		b.Skip("SKIPPED: set CONTINUO_STREAMS to the number of streams, such as 1000")
	}
	const (
		pace           = 250 * time.Millisecond
		upstreamTokens = 48
	)
	proxy := startProxy(b, metronome{tokens: upstreamTokens, pace: pace}.start(b).URL)
	upstream := metronome{tokens: upstreamTokens, pace: pace}.start(b)
	quick := metronome{tokens: 20}.start(b)
	s := serve(b, "model: slow\nmodels:\n"+modelSettings("slow", "chat", upstream.URL)+modelSettings("quick", "chat", quick.URL)+
		"log:\n  level: warn\n"+turnSettings("retries: 0"))
	for range 20 { // what the first turns load once is not the streams'
		if _, _, err := through(s.url, "quick").listen(b.Context(), http.DefaultClient, nil); err != nil {
			b.Fatal(err)
		}
	}
	if _, _, err := bare(proxy.url).listen(b.Context(), http.DefaultClient, nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		proxied, ofProxy := measureStreams(b, proxy, bare(proxy.url), streams)
		led, used := measureStreams(b, s.child, through(s.url, "slow"), streams)
		for name, took := range map[string]float64{"": used.cpu, "/proxy": ofProxy.cpu} {
			b.ReportMetric(took*1e6/float64(streams*upstreamTokens), "cpu-us/token"+name)
		}
		b.ReportMetric(ofProxy.rss/1024/float64(streams), "rss-KiB/stream/proxy")
		b.ReportMetric(used.rss/ofProxy.rss, "rss-x-proxy")
		b.ReportMetric(used.cpu/ofProxy.cpu, "cpu-x-proxy")
		reportStreams(b, proxied, led, used, streams)
	}
}

// measureStreams runs streams through a process and returns what it took for them: the most memory while all of them ran, and
// the processor time.
func measureStreams(b *testing.B, through child, l listener, streams int) (crowd, usage) {
	b.Helper()
	before := through.usage(b)
	var most usage
	c := runStreams(b, l, streams, func() { most = most.max(through.usage(b)) })
	most.cpu = through.usage(b).cpu
	return c, most.minus(before)
}

// crowd is what many streams at once saw.
type crowd struct {
	ramp   time.Duration // until each had its first token
	tokens []arrival     // that were sent while all streams ran
}

// settled is how long after all streams began the load of their beginning is over.
const settled = time.Second

// delays returns the delay at a share of the tokens, and the median of those of each second.
func (c crowd) delays(share float64) (overall, steady time.Duration) {
	var all, each []time.Duration
	seconds := map[time.Duration][]time.Duration{}
	for _, token := range c.tokens {
		all = append(all, token.delay)
		second := token.sent.Truncate(time.Second)
		seconds[second] = append(seconds[second], token.delay)
	}
	for _, delays := range seconds {
		each = append(each, quantile(delays, share))
	}
	return quantile(all, share), quantile(each, 0.5)
}

// runStreams runs streams to their end, and calls look again and again while all of them run.
func runStreams(b *testing.B, l listener, streams int, look func()) crowd {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancelCause(b.Context())
	defer cancel(nil)
	begin := time.Since(epoch)
	var waiting atomic.Int64
	waiting.Store(int64(streams))
	var all, ended atomic.Int64 // when all had begun, and when the first ended, since epoch
	running := make(chan struct{})
	received := make([][]arrival, streams)
	var listeners sync.WaitGroup
	for i := range streams {
		listeners.Go(func() {
			_, arrivals, err := l.listen(ctx, client, func() {
				if waiting.Add(-1) == 0 {
					all.Store(int64(time.Since(epoch)))
					close(running)
				}
			})
			ended.CompareAndSwap(0, int64(time.Since(epoch)))
			if err != nil {
				cancel(fmt.Errorf("stream %d: %w", i, err))
			}
			received[i] = arrivals
		})
	}
	watch(ctx, running, &ended, look)
	listeners.Wait()
	if err := context.Cause(ctx); err != nil {
		b.Fatal(err)
	}
	if all.Load() > ended.Load() {
		b.Fatalf("some streams had ended before all %d had begun: take fewer", streams)
	}
	c := crowd{ramp: time.Duration(all.Load()) - begin}
	for _, arrivals := range received {
		for _, arrival := range arrivals {
			if arrival.sent > time.Duration(all.Load())+settled && arrival.sent < time.Duration(ended.Load()) {
				c.tokens = append(c.tokens, arrival)
			}
		}
	}
	return c
}

// watch calls look twice a second from when all streams run until one has ended.
func watch(ctx context.Context, running <-chan struct{}, ended *atomic.Int64, look func()) {
	select {
	case <-running:
	case <-ctx.Done():
		return
	}
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for ended.Load() == 0 && ctx.Err() == nil {
		look()
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
}

func reportStreams(b *testing.B, proxied, led crowd, used usage, streams int) {
	b.Helper()
	each := func(bytes float64) float64 { return bytes / 1024 / float64(streams) }
	b.ReportMetric(0, "ns/op") // the time is the upstream's
	b.ReportMetric(each(used.rss), "rss-KiB/stream")
	b.ReportMetric(each(used.heap), "heap-KiB/stream")
	b.ReportMetric(each(used.stack), "stack-KiB/stream")
	b.ReportMetric(used.goroutines/float64(streams), "goroutines/stream")
	b.ReportMetric(float64(led.ramp.Milliseconds()), "all-begun-ms")
	for _, share := range []float64{0.5, 0.99} {
		alone, aloneSteady := proxied.delays(share)
		through, throughSteady := led.delays(share)
		name := fmt.Sprintf("delay-p%v-us/", share*100)
		b.ReportMetric(micros(alone), name+"proxy")
		b.ReportMetric(micros(through), name+"continuo")
		b.ReportMetric(micros(aloneSteady), "steady-"+name+"proxy")
		b.ReportMetric(micros(throughSteady), "steady-"+name+"continuo")
		b.ReportMetric(micros(throughSteady-aloneSteady), "steady-"+name+"added")
	}
}

// usage is what a process takes, in bytes, and the processor time that it took, in seconds.
type usage struct{ rss, heap, stack, goroutines, cpu float64 }

func (u usage) max(v usage) usage {
	return usage{max(u.rss, v.rss), max(u.heap, v.heap), max(u.stack, v.stack), max(u.goroutines, v.goroutines), max(u.cpu, v.cpu)}
}

func (u usage) minus(v usage) usage {
	return usage{u.rss - v.rss, u.heap - v.heap, u.stack - v.stack, u.goroutines - v.goroutines, u.cpu - v.cpu}
}

// usage asks a process for its metrics. What it does not report is 0.
func (c child) usage(b testing.TB) (u usage) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, c.url+"/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	series := map[string]*float64{
		"process_resident_memory_bytes": &u.rss, "go_memstats_heap_inuse_bytes": &u.heap,
		"go_memstats_stack_inuse_bytes": &u.stack, "go_goroutines": &u.goroutines,
		"process_cpu_seconds_total": &u.cpu,
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if index := series[name]; index != nil {
			if *index, err = strconv.ParseFloat(value, 64); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		b.Fatal(err)
	}
	return u
}
