package postgres

import (
	"math"
	"strings"
	"testing"
)

func TestPeriodsReachAtLeastAsFarAsAskedFor(t *testing.T) {
	const hour = int64(3600e9)
	for name, test := range map[string]struct {
		from, to int64
		periods  int // 0: too many
		first    string
	}{
		"one":          {1 << 48, 1<<48 + 1, 1, "':0w:p'"},
		"hours":        {1 << 48, 1<<48 + 70*hour, 29, "':0w:p'"},
		"days":         {1 << 48, 1<<48 + 80*hour, 2, "':11:p'"},
		"before 1970":  {-1, 1, 2, "':0-1:p'"},
		"a season":     {0, 90 * 24 * hour, 28, "':10:p'"},
		"a year":       {0, 365 * 24 * hour, 0, ""},
		"since always": {math.MinInt64, math.MaxInt64, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			query, since := periodsBetween("p", test.from, test.to)
			periods := strings.Count(query, ":p'")
			if periods != test.periods || periods > 0 && since > test.from || !strings.Contains(query, test.first) {
				t.Errorf("%d periods since %d: %s", periods, since, query)
			}
		})
	}
}

func TestRareTermsAreLookedForInALongerTime(t *testing.T) {
	seen := pace{project: "p", newest: 1 << 60, oldest: 1<<60 - 1<<46, documents: 4_096}
	for name, test := range map[string]struct{ hits, wanted, periods int }{
		"in all":      {256, 2_000, 7},
		"in some":     {25, 2_000, 3},
		"in none":     {0, 2_000, 0},
		"few of them": {0, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			query, since := seen.periodsOf(documentsWith(test.wanted, test.hits, 256), seen.newest)
			if periods := strings.Count(query, ":p'"); periods != test.periods || periods > 0 && since > seen.newest {
				t.Errorf("%d periods since %d: %s", periods, since, query)
			}
		})
	}
}
