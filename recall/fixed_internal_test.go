package recall

import (
	"math"
	"testing"
)

func TestArithmeticIsCloseToReal(t *testing.T) {
	for _, x := range []float64{.001, .1, .5, .99, 1, 1.01, 2, 3, 10, 1000, 1e6} {
		value := fixed(x * 65536)
		exact := float64(value) / 65536
		if got := float64(ln(value)) / 65536; math.Abs(got-math.Log(exact)) > .001 {
			t.Errorf("ln(%v) is %v, want %v", exact, got, math.Log(exact))
		}
		if got := float64(sqrt(value)) / 65536; math.Abs(got-math.Sqrt(exact)) > .001 {
			t.Errorf("sqrt(%v) is %v, want %v", exact, got, math.Sqrt(exact))
		}
	}
	for _, x := range []float64{-15, -3, -1, -.3, 0, .3, 1, 3, 15} {
		want := 1 / (1 + math.Exp(-x))
		if got := float64(probability(fixed(math.Round(x*65536)))) / (1 << 30); math.Abs(got-want) > 1e-6 {
			t.Errorf("probability(%v) is %v, want %v", x, got, want)
		}
	}
}

// TestProbabilityGrows allows for the rounding of sixteen factors.
func TestProbabilityGrows(t *testing.T) {
	last := uint64(0)
	for x := -17 * one; x < 17*one; x += 97 {
		p := probability(x)
		if p+16 < last || p > 1<<30 {
			t.Fatalf("probability(%d) is %d after %d", x, p, last)
		}
		last = p
	}
}
