package e2e

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

var questions atomic.Int64

// forwarded listens to chat completions through the gateway, each of a conversation of its own.
func forwarded(url, model string) listener {
	l := bare(url)
	l.bodyOf = func() string {
		return fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"question %d"}]}`, model, questions.Add(1))
	}
	return l
}

// BenchmarkGateway streams the same answer from an upstream in this process, from a plain reverse proxy before it, and from the
// gateway before it, each of the two a process of its own; in turn, so that whatever else the machine does meets all of them. A
// request begins a conversation and is forwarded (forward), or adds to one whose history the server keeps (view). Reported
// are medians: until the first token, how much later than from the upstream it comes (over), also as a multiple of what the
// proxy adds (x-proxy), and per token; and the requests of 16 clients per second.
func BenchmarkGateway(b *testing.B) {
	for _, store := range []string{"sqlite", "postgresql"} {
		b.Run(store, func(b *testing.B) { benchmarkGateway(b, store) })
	}
}

func benchmarkGateway(b *testing.B, store string) {
	const clients, each = 16, 4
	upstream := metronome{tokens: overheadTokens}.start(b)
	short := metronome{tokens: 4}.start(b)
	s := serve(b, "model: m\nmodels:\n"+modelSettings("m", "chat", upstream.URL)+modelSettings("short", "chat", short.URL)+"log:\n  level: warn\n"+storeSettings(b, store))
	view := forwarded(s.url, "m")
	view.conversation = "kept"
	routes := []*route{
		{name: "bare", listener: bare(upstream.URL)},
		{name: "proxy", listener: bare(startProxy(b, upstream.URL).url)},
		{name: "forward", listener: forwarded(s.url, "m")},
		{name: "view", listener: view},
	}
	shortProxy := bare(startProxy(b, short.URL).url)
	rates := []struct {
		name string
		of   func(client int) listener
		took []time.Duration
	}{
		{name: "proxy", of: func(int) listener { return shortProxy }},
		{name: "forward", of: func(int) listener { return forwarded(s.url, "short") }},
		{name: "view", of: func(client int) listener {
			l := forwarded(s.url, "short")
			l.conversation = fmt.Sprint("kept-", client)
			return l
		}},
	}
	for range 3 { // connections, caches
		for _, route := range routes {
			route.run(b)
			route.first, route.token, route.delay = nil, nil, nil
		}
	}
	for turn := 0; b.Loop(); turn++ {
		for i := range routes {
			routes[(turn+i)%len(routes)].run(b)
		}
		for i := range rates {
			if turn%10 == 0 {
				rates[i].took = append(rates[i].took, runTurns(b, clients, each, rates[i].of))
			}
		}
	}
	report(b, routes, 0)
	direct, proxy := quantile(routes[0].first, 0.5), quantile(routes[1].first, 0.5)
	for _, route := range routes[2:] {
		over := quantile(route.first, 0.5) - direct
		b.ReportMetric(micros(over), "over-us/"+route.name)
		b.ReportMetric(float64(over)/float64(max(proxy-direct, time.Microsecond)), "x-proxy/"+route.name)
	}
	proxied := quantile(rates[0].took, 0.5)
	for _, rate := range rates {
		took := quantile(rate.took, 0.5)
		b.ReportMetric(clients*each/took.Seconds(), "requests/s/"+rate.name)
		b.ReportMetric(float64(proxied)/float64(took), "rate-x/"+rate.name)
	}
}
