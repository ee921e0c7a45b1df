// Package duration reads durations as people write them: those of Go, which may have weeks and days before, such as 2w,
// 30d or 1d12h.
package duration

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// The units that Go does not have.
const (
	Day  = 24 * time.Hour
	Week = 7 * Day
)

// ErrTooLong says that a duration is longer than there can be.
var ErrTooLong = errors.New("too long: at most 292 years")

var longUnits = regexp.MustCompile(`^(?:(\d+(?:\.\d+)?)w)?(?:(\d+(?:\.\d+)?)d)?`)

// Parse reads a duration.
func Parse(text string) (time.Duration, error) {
	parts := longUnits.FindStringSubmatch(text)
	var total float64
	for i, unit := range []time.Duration{Week, Day} {
		if parts[i+1] != "" {
			n, err := strconv.ParseFloat(parts[i+1], 64)
			if err != nil {
				return 0, ErrTooLong
			}
			total += n * float64(unit)
		}
	}
	rest := text[len(parts[0]):]
	if parts[0] == "" {
		length, err := time.ParseDuration(rest)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration", text)
		}
		return length, nil
	}
	if rest != "" {
		short, err := time.ParseDuration(rest)
		if err != nil || short < 0 {
			return 0, fmt.Errorf("%q is no duration", text)
		}
		total += float64(short)
	}
	if total >= math.MaxInt64 {
		return 0, ErrTooLong
	}
	return time.Duration(total), nil
}
