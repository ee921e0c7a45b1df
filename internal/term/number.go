package term

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Number formats an integer with a space between thousands: 12 400.
func Number[T int | int64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + " " + digits[at:]
	}
	return sign + digits
}

// Count formats a number with its noun: 1 message, 12 entries, 3 keys.
func Count[T int | int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(stem, "e") {
		noun = stem + "ie"
	}
	return Number(n) + " " + noun + "s"
}

// OfLimit formats how much of a limit is used: 3 120 of 6 000 tokens; without a limit only the number.
func OfLimit(used, limit int, noun string) string {
	if limit == 0 {
		return Count(used, noun)
	}
	return Number(used) + " of " + Count(limit, noun)
}

// Size formats a size in bytes with a unit: 812 B, 1.4 MB. A MB has 1 000 000 bytes.
func Size(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	size, units := float64(n)/1000, []string{"kB", "MB", "GB", "TB"}
	for size >= 999.95 && len(units) > 1 {
		size, units = size/1000, units[1:]
	}
	return strconv.FormatFloat(size, 'f', 1, 64) + " " + units[0]
}

// Duration formats a duration to the second: 4 s, 1 min 12 s, 2 h 5 min.
func Duration(d time.Duration) string {
	seconds := int64(max(d, 0) / time.Second)
	switch minutes := seconds / 60; {
	case minutes >= 60:
		return fmt.Sprintf("%s h %d min", Number(minutes/60), minutes%60)
	case minutes > 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds%60)
	}
	return fmt.Sprintf("%d s", seconds)
}

// Time formats a time in local time, to the minute.
func Time(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// Blocks draws a share of a whole as blocks.
func Blocks(part, whole int64, width int) string {
	filled := 0
	if whole > 0 {
		filled = int(min((part*int64(width)+whole/2)/whole, int64(width)))
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}
