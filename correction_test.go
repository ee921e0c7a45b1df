package continuo_test

import (
	"math"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func TestACorrectionFollowsReportsBothWays(t *testing.T) {
	for name, part := range map[string]float64{"a provider that counts more": 1.4, "a provider that counts less": 0.75} {
		t.Run(name, func(t *testing.T) {
			var c continuo.Correction
			for i := range 10 {
				estimated := 1000 + 300*i
				c = c.With(estimated, int(part*float64(estimated))+40) // a part of each request is not estimated
			}
			want := part*5000 + 40
			if got := float64(c.Tokens(5000)); math.Abs(got/want-1) > 0.02 {
				t.Errorf("5 000 tokens are corrected to %v, want about %v", got, want)
			}
			if got := float64(c.Estimated(int(want))); math.Abs(got/5000-1) > 0.02 {
				t.Errorf("a limit of %v is %v estimated tokens, want about 5 000", want, got)
			}
			if c.Reports != 10 || c.Spread <= 0 || c.Spread > 20_000 {
				t.Errorf("the correction is %+v", c)
			}
		})
	}
}

func TestAReportThatIsFarOffCountsWhenASecondAgrees(t *testing.T) {
	var c continuo.Correction
	for range 5 {
		c = c.With(1000, 1100)
	}
	off := c.With(1000, 650)
	if got := off.Tokens(1000); got != 1100 || off.Spread <= c.Spread {
		t.Errorf("after one report of 650, 1 000 tokens are corrected to %d, and the spread went from %d to %d", got, c.Spread, off.Spread)
	}
	if got := off.With(1000, 1100); got.Tokens(1000) != 1100 || got.Doubted != 0 {
		t.Errorf("after a report like those before, the correction is %+v", got)
	}
	if got := off.With(1000, 700).Tokens(1000); got != 700 {
		t.Errorf("after a second such report, 1 000 tokens are corrected to %d", got)
	}
}

func TestOfTwoFirstReportsTheHigherCounts(t *testing.T) {
	var c continuo.Correction
	for _, reports := range [][2]int{{650, 1100}, {1100, 650}} {
		if got := c.With(1000, reports[0]).With(1000, reports[1]).Tokens(1000); got != 1100 {
			t.Errorf("after reports of %v, 1 000 tokens are corrected to %d", reports, got)
		}
	}
}

func TestReportsThatCannotBeTrueAreBounded(t *testing.T) {
	var none continuo.Correction
	for _, c := range []continuo.Correction{none.With(0, 5), none.With(5, 0), none.With(-1, 7), none.With(7, -1)} {
		if c != none || c.Tokens(100) != 100 || c.Estimated(100) != 100 {
			t.Errorf("a report of nothing corrects: %+v", c)
		}
	}
	most, least := none.With(1, math.MaxInt), none.With(math.MaxInt, 1)
	if most.Tokens(100) != 400 || least.Tokens(100) != 60 {
		t.Errorf("100 tokens are corrected to %d and %d", most.Tokens(100), least.Tokens(100))
	}
	if got := most.Estimated(math.MaxInt); got <= 0 {
		t.Errorf("the largest limit is %d estimated tokens", got)
	}
	for _, forged := range []continuo.Correction{{Ratio: -1, Reports: 1}, {Ratio: 1, Reports: 9}, {Ratio: math.MaxInt, Reports: 1}, {Ratio: 1_000_000, Reports: 0}, {Ratio: 1_000_000, Spread: -1, Reports: 2}, {Ratio: 1_000_000, Reports: 2, Doubted: 1}} {
		if forged.Checked() != none {
			t.Errorf("%+v is taken", forged)
		}
	}
}
