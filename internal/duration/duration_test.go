package duration

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 30 * Day, "2w": 14 * Day, "1w2d": 9 * Day, "1.5d": 36 * time.Hour, "1d12h": 36 * time.Hour, "36h": 36 * time.Hour,
		"90s": 90 * time.Second, "0s": 0, "0d": 0, "-1h": -time.Hour, "1w0.5s": Week + 500*time.Millisecond,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "30", "d", "1d2w", "1d-1h", "-1d", "1d ", "1e3d", "1d1d", "99999999w", "1y"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}
