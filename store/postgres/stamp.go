package postgres

import (
	"errors"
	"time"
)

// stampLayout is RFC 3339 with a fixed width, so that texts sort as their times do.
const stampLayout = "2006-01-02T15:04:05.000000000Z"

// nowStamp is the database's current time, which has microseconds, in the format of stamp.
const (
	nowStamp    = `to_char(clock_timestamp() AT TIME ZONE 'UTC', ` + stampFormat + `)`
	stampFormat = `'YYYY-MM-DD"T"HH24:MI:SS.US"000Z"'`
)

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// unstamp reads what stamp wrote, or returns the error of an earlier step.
func unstamp(text string, earlier error) (time.Time, error) {
	t, err := time.Parse(stampLayout, text)
	return t, errors.Join(earlier, err)
}

// microseconds rounds away from zero, so that no lease becomes 0.
func microseconds(lease time.Duration) int64 {
	if lease%time.Microsecond < 0 {
		return lease.Microseconds() - 1
	}
	if lease%time.Microsecond > 0 {
		return lease.Microseconds() + 1
	}
	return lease.Microseconds()
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func textOrNull(data []byte) any {
	if data == nil {
		return nil
	}
	return string(data)
}

func valueOrNull(text *string) any {
	if text == nil {
		return nil
	}
	return *text
}
