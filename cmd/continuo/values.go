package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/continuo-log/continuo/internal/duration"
)

// age is a flag's duration before now: a duration of Go, which may have days and weeks too.
type age time.Duration

// UnmarshalText is part of encoding.TextUnmarshaler.
func (a *age) UnmarshalText(text []byte) error {
	length, err := duration.Parse(string(text))
	if errors.Is(err, duration.ErrTooLong) {
		return fmt.Errorf("%q is %w", text, err)
	}
	if err != nil || length <= 0 {
		return fmt.Errorf("given %q; allowed: a positive duration, such as 30d, 2w or 36h", text)
	}
	*a = age(length)
	return nil
}

// seq is the seq of an entry, as a flag. Zero is the newest, the default.
type seq int64

// UnmarshalText is part of encoding.TextUnmarshaler.
func (s *seq) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case err != nil:
		return fmt.Errorf("given %q; allowed: a whole number", text)
	case n < 1:
		return errors.New("entries are counted from 1")
	}
	*s = seq(n)
	return nil
}
