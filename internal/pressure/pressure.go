// Package pressure says how near the process is to its memory limit (GOMEMLIMIT), so that caches can give way.
package pressure

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// Reading is how much of its memory limit the process used when the garbage collector last finished.
type Reading struct {
	Cycle       uint64 // counts the collector's runs
	Live, Limit int64  // bytes; Limit is math.MaxInt64 without one
}

// share is the part of the memory limit, in fourths, above which caches give way: the collector needs the rest for what the
// process allocates between two runs.
const share = 3

// IsHigh reports whether caches should give way.
func (r Reading) IsHigh() bool { return r.Limit != math.MaxInt64 && r.Live > r.Limit/4*share }

// Read takes about a microsecond.
func Read() Reading {
	samples := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(samples)
	return Reading{samples[0].Value.Uint64(), int64(samples[1].Value.Uint64()), int64(samples[2].Value.Uint64())}
}

// Bound returns a number of bytes, or the given part of the memory limit where that is less.
func Bound(bytes, part int64) int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return min(bytes, limit/part)
	}
	return bytes
}
