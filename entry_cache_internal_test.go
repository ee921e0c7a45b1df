package continuo

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/pressure"
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
		now  pressure.Reading
		left int
	}{
		"no limit":       {pressure.Reading{Cycle: 1, Live: 1 << 40, Limit: math.MaxInt64}, 100},
		"far from it":    {pressure.Reading{Cycle: 1, Live: 70, Limit: 100}, 100},
		"near it":        {pressure.Reading{Cycle: 1, Live: 80, Limit: 100}, 50},
		"no new reading": {pressure.Reading{Cycle: 0, Live: 80, Limit: 100}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			c := filledCache(99)
			c.cycle, c.pressure = 0, func() pressure.Reading { return test.now }
			for range 2 { // the second time, the collector has not run again
				c.put("conv_099", 1, 1, []Entry{{Seq: 1, Role: User, Content: Text(strings.Repeat("x", 1000))}})
			}
			if _, newest := c.view("conv_099"); len(c.owned) != test.left || !newest {
				t.Errorf("%d conversations are left, want %d; the newest: %v", len(c.owned), test.left, newest)
			}
		})
	}
}
