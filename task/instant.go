package task

import (
	"strings"
	"time"
)

// instantOf parses a timestamp: RFC 3339 and related forms of ISO 8601, also a date alone, with a space or a T, with or
// without punctuation, a fraction after a point or a comma. Without a zone it is UTC. The result has the zone of the
// text.
func instantOf(text string) (instant time.Time, ok bool) {
	text = strings.ToUpper(strings.TrimSpace(text))
	date, clock := text, ""
	if at := strings.IndexAny(text, "T "); at >= 0 {
		date, clock = text[:at], text[at:]
	}
	zone := ""
	if at := strings.IndexAny(clock, "Z+-"); at >= 0 {
		clock, zone = clock[:at], clock[at:]
	}
	whole := clock
	if at := strings.IndexAny(clock, ".,"); at >= 0 {
		whole = clock[:at]
	}
	layout := dateLayout(len(date)) + clockLayout(len(whole)) + zoneLayout(zone)
	instant, err := time.Parse(layout, date+strings.Replace(clock, " ", "T", 1)+zone)
	return instant, err == nil
}

func dateLayout(length int) string {
	if length == len("20060102") {
		return "20060102"
	}
	return "2006-01-02"
}

// clockLayout is the layout of a time of day with the separator before it.
func clockLayout(length int) string {
	for _, layout := range []string{"", "T15", "T1504", "T15:04", "T150405"} {
		if len(layout) == length {
			return layout
		}
	}
	return "T15:04:05"
}

func zoneLayout(zone string) string {
	if zone == "Z" {
		return "Z07:00"
	}
	for _, layout := range []string{"", "-07", "-0700", "-07:00"} {
		if len(layout) == len(zone) {
			return layout
		}
	}
	return "-07:00:00"
}

// clockOf is a timestamp as the prompt shows it: the time of day in its own zone, or the text if it cannot be parsed.
func clockOf(timestamp string) string {
	if instant, ok := instantOf(timestamp); ok {
		return instant.Format("15:04:05")
	}
	if text := label(timestamp, maxTimestamp); text != "" {
		return text
	}
	return "unknown time"
}

// span returns the timestamps of the oldest and the newest message whose time can be parsed, "" if there is none.
func span(messages []Message) (oldest, newest string) {
	var first, last time.Time
	for _, message := range messages {
		instant, ok := instantOf(message.Timestamp)
		if !ok {
			continue
		}
		if oldest == "" || instant.Before(first) {
			oldest, first = message.Timestamp, instant
		}
		if newest == "" || instant.After(last) {
			newest, last = message.Timestamp, instant
		}
	}
	return oldest, newest
}
