package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkTurns runs turns of an upstream that answers at once, from clients that each have a conversation of their
// own and send their next message when they have the answer: through the server and through a plain reverse proxy,
// in turn. Reported are the medians of the rounds, per second, and the server's processor time per turn.
func BenchmarkTurns(b *testing.B) {
	for _, store := range []string{"sqlite", "postgresql"} {
		for _, clients := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/clients=%d", store, clients), func(b *testing.B) { benchmarkTurns(b, store, clients) })
		}
	}
}

func benchmarkTurns(b *testing.B, store string, clients int) {
	const each = 8 // turns of each client in a round
	upstream := metronome{tokens: 4}.start(b)
	s := serve(b, "model: m\nmodels:\n"+modelSettings("m", "chat", upstream.URL)+"log:\n  level: warn\n"+storeSettings(b, store))
	proxy := bare(startProxy(b, upstream.URL).url)
	direct := func(int) listener { return proxy }
	turns := func(client int) listener { return throughSession(s.url, "m", fmt.Sprintf("s%d", client)) }
	runTurns(b, clients, each, direct) // connections, caches
	runTurns(b, clients, each, turns)
	var ours, theirs []time.Duration
	var cpu float64
	for b.Loop() {
		theirs = append(theirs, runTurns(b, clients, each, direct))
		before := s.usage(b).cpu
		ours = append(ours, runTurns(b, clients, each, turns))
		cpu += s.usage(b).cpu - before
	}
	perSecond := func(rounds []time.Duration) float64 { return float64(clients*each) / quantile(rounds, 0.5).Seconds() }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(perSecond(ours), "turns/s")
	b.ReportMetric(perSecond(theirs), "proxied/s")
	b.ReportMetric(perSecond(ours)/perSecond(theirs), "x_proxy")
	b.ReportMetric(cpu*1e6/float64(len(ours)*clients*each), "cpu-us/turn")
}

// runTurns returns how long all clients took for their turns.
func runTurns(b *testing.B, clients, each int, of func(client int) listener) time.Duration {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	begin := time.Now()
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			l := of(i)
			for range each {
				if _, _, err := l.listen(b.Context(), client, nil); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	return time.Since(begin)
}

// BenchmarkReady starts the program, built as for a release, over an existing store until /readyz answers. Reported are the median,
// and the size of the program.
func BenchmarkReady(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "continuo")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/continuo-log/continuo/cmd/continuo")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	file, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	timeToReady(b, dir, path) // a new store
	for b.Loop() {
		took = append(took, timeToReady(b, dir, path))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(slices.Clone(took), 0.5).Seconds()*1000, "ready-ms")
	b.ReportMetric(float64(file.Size())/1e6, "binary-MB")
}

// timeToReady starts the program, asks until it is ready, and stops it.
func timeToReady(b *testing.B, dir, path string) time.Duration {
	b.Helper()
	begin := time.Now()
	command := exec.CommandContext(b.Context(), path, "serve", "--listen", "127.0.0.1:0")
	command.Dir, command.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	said := &outputWatcher{pattern: regexp.MustCompile(`on (http://127\.0\.0\.1:\d+)`), found: make(chan string, 1)}
	command.Stdout, command.Stderr = said, said
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	}()
	select {
	case url := <-said.found:
		waitReady(b, url+"/readyz")
	case <-time.After(startTime):
		b.Fatalf("the program does not listen:\n%s", said)
	}
	return time.Since(begin)
}
