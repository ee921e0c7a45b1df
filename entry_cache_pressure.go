package continuo

import (
	"math"
	"runtime/metrics"
)

// pressure is how much of its memory limit the process used when the garbage collector last finished.
type pressure struct {
	cycle       uint64 // counts the collector's runs
	live, limit int64  // bytes; limit is math.MaxInt64 without one
}

// pressureShare is the part of the memory limit, in fourths, above which a cache gives way: the collector needs the rest
// for what the process allocates between two runs.
const pressureShare = 3

func (p pressure) isHigh() bool {
	return p.limit != math.MaxInt64 && p.live > p.limit/4*pressureShare
}

// readPressure takes about a microsecond.
func readPressure() pressure {
	samples := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/gomemlimit:bytes"}}
	metrics.Read(samples)
	return pressure{samples[0].Value.Uint64(), int64(samples[1].Value.Uint64()), int64(samples[2].Value.Uint64())}
}

// giveWay drops half of the cache, those conversations that were not read for the longest time, for each run of the
// collector after which the process is near its memory limit. The caller holds the lock.
func (c *entryCache) giveWay() {
	p := c.pressure()
	if p.cycle == c.cycle {
		return
	}
	c.cycle = p.cycle
	if !p.isHigh() {
		return
	}
	for half := c.bytes / 2; c.bytes > half; {
		c.removeOldest()
	}
}
