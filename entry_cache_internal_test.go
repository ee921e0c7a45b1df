package continuo

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// filledCache has one entry of each of so many conversations.
func filledCache(conversations int) *entryCache {
	c := newEntryCache(0)
	for n := range conversations {
		c.put(fmt.Sprintf("conv_%03d", n), 1, 1, []Entry{{Seq: 1, Role: User, Content: Text(strings.Repeat("x", 1000))}})
	}
	return c
}

func TestTheCacheGivesWayNearTheMemoryLimit(t *testing.T) {
	for name, test := range map[string]struct {
		now  pressure
		left int
	}{
		"no limit":       {pressure{cycle: 1, live: 1 << 40, limit: math.MaxInt64}, 100},
		"far from it":    {pressure{cycle: 1, live: 70, limit: 100}, 100},
		"near it":        {pressure{cycle: 1, live: 80, limit: 100}, 50},
		"no new reading": {pressure{cycle: 0, live: 80, limit: 100}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			c := filledCache(99)
			c.cycle, c.pressure = 0, func() pressure { return test.now }
			for range 2 { // the second time, the collector has not run again
				c.put("conv_099", 1, 1, []Entry{{Seq: 1, Role: User, Content: Text(strings.Repeat("x", 1000))}})
			}
			if _, newest := c.view("conv_099"); len(c.owned) != test.left || !newest {
				t.Errorf("%d conversations are left, want %d; the newest: %v", len(c.owned), test.left, newest)
			}
		})
	}
}

// TestPressureIsRead has the collector run with a limit that is below what lives.
func TestPressureIsRead(t *testing.T) {
	ballast := make([]byte, 64<<20)
	before := readPressure()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(64 << 20))
	runtime.GC()
	now := readPressure()
	runtime.KeepAlive(ballast)
	if now.cycle <= before.cycle || now.limit != 64<<20 || !now.isHigh() {
		t.Errorf("before %+v, now %+v", before, now)
	}
}
