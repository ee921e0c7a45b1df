package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// age is a flag's duration before now: a duration of Go, which may have days and weeks too.
type age time.Duration

var longUnits = regexp.MustCompile(`^(?:(\d+(?:\.\d+)?)w)?(?:(\d+(?:\.\d+)?)d)?`)

const day = 24 * time.Hour

// UnmarshalText is part of encoding.TextUnmarshaler.
func (a *age) UnmarshalText(text []byte) error {
	parts := longUnits.FindSubmatch(text)
	var total float64
	for i, unit := range []time.Duration{7 * day, day} {
		if len(parts[i+1]) > 0 {
			n, err := strconv.ParseFloat(string(parts[i+1]), 64)
			if err != nil {
				return fmt.Errorf("%q is too long", text)
			}
			total += n * float64(unit)
		}
	}
	if rest := string(text[len(parts[0]):]); rest != "" || len(text) == 0 {
		short, err := time.ParseDuration(rest)
		if err != nil || short < 0 && total > 0 {
			return fmt.Errorf("given %q; give a duration, such as 30d, 2w or 36h", text)
		}
		total += float64(short)
	}
	if total <= 0 {
		return fmt.Errorf("given %q; give a positive duration, such as 30d, 2w or 36h", text)
	}
	if total >= math.MaxInt64 {
		return fmt.Errorf("%q is too long: at most 292 years", text)
	}
	*a = age(total)
	return nil
}

// seq is the seq of an entry, as a flag. Zero is the newest, the default.
type seq int64

// UnmarshalText is part of encoding.TextUnmarshaler.
func (s *seq) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil:
		return fmt.Errorf("given %q, which is no whole number", text)
	case n < 1:
		return errors.New("entries are counted from 1")
	}
	*s = seq(n)
	return nil
}
