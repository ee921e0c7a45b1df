package workflow

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkParseTwice reads workflows and those of twice as many nodes, with as many edges for each, side by side. The
// figure is the ratio of their times: 2 were linear; that of the graph may grow to 4, which the limit of nodes bounds.
func BenchmarkParseTwice(b *testing.B) {
	chain := func(n int) string {
		return "nodes:\n" + numbered(n, "  n%d: {brief: b}\n") + "edges:\n" + ahead(n, "  - n%d -> n%d\n")
	}
	for name, make := range map[string]func(n int) string{
		"a chain": chain,
		"with conditions": func(n int) string {
			return "nodes:\n" + numbered(n, "  n%d: {brief: b}\n") + "edges:\n" + ahead(n, "  - {from: n%d, to: n%d, when: visit < 3 && len(outputs.text) > 2}\n")
		},
		"loops over loops": func(n int) string { return chain(n) + back(n, "  - {from: n%d, to: n%d, when: visit < 3, max: 3}\n") },
	} {
		b.Run(name, func(b *testing.B) {
			once, twice := []byte(make(100)), []byte(make(200))
			var short, long time.Duration
			for b.Loop() {
				short += parsing(b, once)
				long += parsing(b, twice)
			}
			b.ReportMetric(float64(long)/float64(short), "times-at-2n")
		})
	}
}

// ahead writes a line for each two neighbours of n nodes.
func ahead(n int, format string) string {
	var text strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&text, format, i, i+1)
	}
	return text.String()
}

// back writes a line for each node but the first, and the first.
func back(n int, format string) string {
	var text strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&text, format, i+1, 0)
	}
	return text.String()
}

// parsing is how long a workflow takes to be read.
func parsing(b *testing.B, text []byte) time.Duration {
	began := time.Now()
	if _, err := Parse("twice.yaml", text, settings); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}
