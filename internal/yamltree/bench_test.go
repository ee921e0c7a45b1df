package yamltree

import (
	"strings"
	"testing"
	"time"
)

// BenchmarkParseTwice reads files and files of twice their size side by side. The figure is the ratio of their times: 2
// is what is wanted; the time of keys grows with their square, to 4, which MaxKeys bounds.
func BenchmarkParseTwice(b *testing.B) {
	limits := Options{MaxBytes: 256 << 10, MaxKeys: 5000, MaxLevels: 32}
	for name, make := range map[string]func(n int) string{
		"keys":           func(n int) string { return numbered(n/50, "k%d: 1\n") },
		"items":          func(n int) string { return "[" + strings.Repeat("a,", n/2) + "]" },
		"lines of items": func(n int) string { return strings.Repeat("- a\n", n/4) },
		"comments":       func(n int) string { return strings.Repeat("#\n", n/2) },
		"a long text":    func(n int) string { return "a: |\n" + strings.Repeat(" x\n", n/3) },
		"a quoted text":  func(n int) string { return "a: \"" + strings.Repeat("\\x41", n/4) + "\"\n" },
	} {
		b.Run(name, func(b *testing.B) {
			once, twice := []byte(make(120_000)), []byte(make(240_000))
			var short, long time.Duration
			for b.Loop() {
				short += reading(b, once, limits)
				long += reading(b, twice, limits)
			}
			b.ReportMetric(float64(long)/float64(short), "times-at-2n")
		})
	}
}

// reading is how long a file takes to be read.
func reading(b *testing.B, data []byte, limits Options) time.Duration {
	began := time.Now()
	if _, err := Parse(data, limits); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}
