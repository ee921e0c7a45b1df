package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/continuo-log/continuo/internal/pgtest"
)

// proxyOf names the upstream for a process that is a plain reverse proxy.
const proxyOf = "CONTINUO_TEST_PROXY_OF"

// serveProxy passes everything on, event by event, and never returns.
func serveProxy(upstream string) {
	fatal := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	target, err := url.Parse(upstream)
	fatal(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the process
	fatal(err)
	fmt.Println("listening http://" + listener.Addr().String())
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An upstream may answer before the proxy has seen the end of the request's body; else that breaks the answer off.
		_ = http.NewResponseController(w).EnableFullDuplex()
		proxy.ServeHTTP(w, r)
	})
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.Handle("/metrics", promhttp.Handler()) // of the process
	fatal((&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}).Serve(listener))
}

func startProxy(t testing.TB, upstream string) child {
	t.Helper()
	command := exec.Command(os.Args[0]) //nolint:noctx // start ends it
	command.Env = append(os.Environ(), proxyOf+"="+upstream)
	return start(t, command, `listening (http://127\.0\.0\.1:\d+)`, "/")
}

// overheadTokens is the length of the answers of BenchmarkOverhead.
const overheadTokens = 200

// BenchmarkOverhead streams the same answer from an upstream in this process, from a plain reverse proxy
// before it, and from the server before it, each of the two a process of its own; in turn, so that whatever
// else the machine does meets all of them. The server makes the message durable before it asks: in a new conversation, in
// one that has had a few turns (same), and in one of 10 000 messages (long). Reported are medians: until the first
// token, per token (the rest of the answer shared among its tokens), and from the writing of a token to the reading of
// it; and how much later than through the proxy the first token comes (added).
func BenchmarkOverhead(b *testing.B) {
	for _, store := range []string{"sqlite", "postgresql"} {
		for _, pace := range []time.Duration{0, 5 * time.Millisecond} {
			b.Run(fmt.Sprintf("%s/pace=%v", store, pace), func(b *testing.B) {
				upstream := metronome{tokens: overheadTokens, pace: pace}.start(b)
				s := serve(b, "model: m\nmodels:\n"+modelSettings("m", "chat", upstream.URL)+"log:\n  level: warn\n"+storeSettings(b, store))
				routes := []*route{
					{name: "bare", listener: bare(upstream.URL)},
					{name: "proxy", listener: bare(startProxy(b, upstream.URL).url)},
					{name: "new", listener: through(s.url, "m")},
				}
				if pace == 0 {
					s.importMessages(b, "long", 10_000)
					routes = append(routes, &route{name: "same", listener: throughSession(s.url, "m", "same")},
						&route{name: "long", listener: throughSession(s.url, "m", "long")})
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
				}
				report(b, routes, pace)
			})
		}
	}
}

// storeSettings are the settings of a server with a store of its own: "sqlite" or "postgresql".
func storeSettings(b *testing.B, store string) string {
	b.Helper()
	if store == "sqlite" {
		return ""
	}
	return "store:\n  url: " + pgtest.Start(b, pgtest.Options{Durable: true}).Database(b) + "\n"
}

// importMessages makes a conversation of count messages of some 700 characters.
func (s server) importMessages(b *testing.B, key string, count int) {
	b.Helper()
	messages := make([]map[string]string, count)
	for i := range messages {
		messages[i] = map[string]string{"role": [...]string{"user", "assistant"}[i%2], "content": fmt.Sprintf("%d: %s", i, strings.Repeat("message ", 88))}
	}
	body, err := json.Marshal(map[string]any{"key": key, "messages": messages})
	if err != nil {
		b.Fatal(err)
	}
	response, err := http.Post(s.url+"/api/conversations/import", "application/json", bytes.NewReader(body)) //nolint:noctx // the benchmark's own time limit
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode/100 != 2 {
		b.Fatalf("import: %s: %.500s", response.Status, text)
	}
}

// route is one way to the upstream, and what was measured on it.
type route struct {
	name     string
	listener listener

	first, token, delay []time.Duration
}

func (r *route) run(b *testing.B) {
	begin, arrivals, err := r.listener.listen(b.Context(), http.DefaultClient, nil)
	if err != nil {
		b.Fatal(err)
	}
	if len(arrivals) != overheadTokens {
		b.Fatalf("%s: %d tokens, want %d", r.name, len(arrivals), overheadTokens)
	}
	first, last := arrivals[0], arrivals[len(arrivals)-1]
	r.first = append(r.first, first.sent+first.delay-begin)
	r.token = append(r.token, (last.sent+last.delay-first.sent-first.delay)/time.Duration(len(arrivals)-1))
	for _, arrival := range arrivals {
		r.delay = append(r.delay, arrival.delay)
	}
}

// report reports each way, and how many times the bare upstream's time it takes. The time per token says
// something when the upstream does not wait, the delay of a token when it does.
func report(b *testing.B, routes []*route, pace time.Duration) {
	b.ReportMetric(0, "ns/op") // the three together: of no use
	var bare [2]time.Duration
	for i, route := range routes {
		name, first := "token", quantile(route.first, 0.5)
		each := quantile(route.token, 0.5)
		if pace > 0 {
			name, each = "delay", quantile(route.delay, 0.5)
			b.ReportMetric(micros(quantile(route.delay, 0.99)), "delay-p99-us/"+route.name)
		}
		b.ReportMetric(micros(first), "first-us/"+route.name)
		b.ReportMetric(micros(each), name+"-us/"+route.name)
		if i == 0 {
			bare = [2]time.Duration{first, each}
			continue
		}
		b.ReportMetric(float64(first)/float64(bare[0]), "first-x/"+route.name)
		if i > 1 {
			b.ReportMetric(micros(first-quantile(routes[1].first, 0.5)), "added-us/"+route.name)
		}
		b.ReportMetric(float64(each)/float64(bare[1]), name+"-x/"+route.name)
	}
}
