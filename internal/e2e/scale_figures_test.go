package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// spell is what clients did in a stretch of time.
type spell struct {
	took time.Duration
	each []time.Duration // sorted
}

// during lets clients do something again and again for so long, at least once, each one thing at a time.
func during(b *testing.B, clients int, length time.Duration, do func(ctx context.Context, client int) error) spell {
	b.Helper()
	each := make([][]time.Duration, clients)
	start := time.Now()
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for len(each[client]) == 0 || time.Since(start) < length {
				began := time.Now()
				if err := do(b.Context(), client); err != nil {
					b.Error(err)
					return
				}
				each[client] = append(each[client], time.Since(began))
			}
		})
	}
	running.Wait()
	s := spell{took: time.Since(start), each: slices.Concat(each...)}
	if b.Failed() || len(s.each) == 0 {
		b.FailNow()
	}
	slices.Sort(s.each)
	return s
}

func (s spell) rate() float64 { return float64(len(s.each)) / s.took.Seconds() }

func (s spell) quantile(q float64) time.Duration {
	return s.each[min(int(q*float64(len(s.each))), len(s.each)-1)]
}

// figures are what was measured in each round, by name.
type figures map[string][]float64

func (f figures) add(name string, value float64) { f[name] = append(f[name], value) }

func (f figures) median(name string) float64 {
	values := slices.Sorted(slices.Values(f[name]))
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}

// against adds how many times the rate of the smallest of its kind each contender has, round by round.
func (f figures) against(b *testing.B, contenders []*contender) {
	b.Helper()
	for _, c := range contenders {
		for _, what := range []string{"appends", "builds"} {
			for round, rate := range f[what+"/s/"+c.name] {
				f.add(strings.TrimSuffix(what, "s")+"-x-"+c.first[:strings.Index(c.first, "=")+2]+"/"+c.name, rate/f[what+"/s/"+c.first][round])
			}
		}
	}
}

// report reports the medians.
func (f figures) report(b *testing.B) {
	b.Helper()
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f)) {
		b.ReportMetric(f.median(name), name)
		fmt.Fprintf(&table, "\n%-36s %12.3f   of %.5g", name, f.median(name), f[name])
	}
	b.Log(&table)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// buildTail builds the codex view of a conversation, as the server does for GET …/context.
func buildTail(ctx context.Context, log *continuo.Log, id string) error {
	conversation, err := log.Conversation(ctx, id)
	if err != nil {
		return err
	}
	view, err := window.DefaultSettings().View(window.Codex)
	if err != nil {
		return err
	}
	source := turn.Source{Context: ctx, Log: log, Conversation: conversation}
	_, err = view.Build(source, window.Input{At: conversation.LastSeq, Counter: token.O200k()})
	return err
}
