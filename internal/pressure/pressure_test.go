package pressure_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/continuo-log/continuo/internal/pressure"
)

// TestPressureIsRead has the collector run with a limit that is below what lives.
func TestPressureIsRead(t *testing.T) {
	ballast := make([]byte, 64<<20)
	before := pressure.Read()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(64 << 20))
	runtime.GC()
	now := pressure.Read()
	runtime.KeepAlive(ballast)
	if now.Cycle <= before.Cycle || now.Limit != 64<<20 || !now.IsHigh() {
		t.Errorf("before %+v, now %+v", before, now)
	}
}
