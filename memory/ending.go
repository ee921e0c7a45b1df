package memory

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/lazy"
)

const (
	monthNames   = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`
	weekdayNames = `mon|tues|wednes|thurs|fri|satur|sun`
	thisPeriod   = `today|this week|this month|this year`
	smallNumbers = `one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve`
)

// endings match an end that a date, a weekday or a period names.
var endings = []func() *regexp.Regexp{
	lazy.Regexp(`(?i)\b(?P<word>until|till|til|through) (?:the |this )?(?:(?P<date>\d{4}-\d{2}-\d{2})|(?P<weekday>` + weekdayNames + `)day|(?P<tomorrow>tomorrow)|end of (?:the |this )?(?P<end>week|month|year)|` +
		`(?P<month>` + monthNames + `)\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>\d{4}))?|` +
		`(?P<day2>\d{1,2})(?:st|nd|rd|th)?(?: of)? (?P<month2>` + monthNames + `)\b\.?(?:,? (?P<year2>\d{4}))?)(?:[^\w-]|$)`),
	lazy.Regexp(`(?i)\b(?:(?:only|just) for (?P<only>` + thisPeriod + `)\b|(?P<only2>` + thisPeriod + `) only\b|only (?P<only3>` + thisPeriod + `)(?:[.!,;)]|$))`),
	lazy.Regexp(`(?i)\bfor the next (?P<count>\d{1,2}|` + smallNumbers + `|couple of) (?P<unit>day|week|month|year)s?\b`),
}

var (
	// again matches what ends and begins again.
	again = lazy.Regexp(`(?i)\b(?:every|each|usually|normally|typically|generally|often|most (?:days|weeks)|(?:week|` + weekdayNames + `)days)\b`)
	// notBefore matches a denial before an end: what is denied until a day is true on it.
	notBefore = lazy.Regexp(`(?i)\b(?:not|never|no|nothing|nobody|cannot|\w+n't)\b`)
	// isPast matches what is told of the past.
	isPast = lazy.Regexp(`(?i)\b(?:was|were|had|did|didn't|wasn't|weren't)\b`)
	// aside begins a clause about something else, whose end is not that of the statement.
	aside = lazy.Regexp(`(?i)\b(?:if|whether|because|which|who|whose|when|where|while)\b`)
	// guided ends what is gone through, not what lasts.
	guided = lazy.Regexp(`(?i)\b(?:me|us|you|it|them|go|going|get|look|read)\s*$`)
	// isGoing begins an event that has not ended.
	isGoing = lazy.Regexp(`(?i)^(?:i'm|i am|we're|we are|(?:i|we) need) `)
)

// Ending is until when a statement of a kind, said at some time, says that it holds: the end of the last day, in UTC.
// It is zero where the statement names no end that is certain, such as "until June" or, on a Friday, "until Friday", where the end is
// that of something else, and where it tells of the past.
func Ending(kind continuo.FactKind, text string, said time.Time) time.Time {
	plain := strings.ReplaceAll(text, "’", "'")
	if said.IsZero() || kind == continuo.FactEvent && !isGoing().MatchString(plain) || again().MatchString(plain) || isPast().MatchString(plain) {
		return time.Time{}
	}
	for _, pattern := range endings {
		at := pattern().FindStringSubmatchIndex(plain)
		if at == nil || aside().MatchString(plain[:at[0]]) {
			continue
		}
		named := namedEnd{pattern(), plain, at}
		if named.part("word") == "through" && guided().MatchString(plain[:at[0]]) {
			continue
		}
		day, ok := named.lastDay(dayOf(said))
		if ok && (named.part("word") == "through" || named.part("word") == "" || !notBefore().MatchString(plain[:at[0]])) {
			day = day.AddDate(0, 0, 1)
		}
		if !ok || !day.After(said) {
			return time.Time{}
		}
		return day
	}
	return time.Time{}
}

func dayOf(at time.Time) time.Time {
	year, month, day := at.UTC().Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// namedEnd is a match of an ending in a text.
type namedEnd struct {
	pattern *regexp.Regexp
	text    string
	at      []int
}

// part is the first of some groups that has matched, in lower case; "" for none.
func (n *namedEnd) part(names ...string) string {
	for _, name := range names {
		if i := n.pattern.SubexpIndex(name); i > 0 && n.at[2*i] >= 0 {
			return strings.ToLower(n.text[n.at[2*i]:n.at[2*i+1]])
		}
	}
	return ""
}

// lastDay is the day that an end names.
func (n *namedEnd) lastDay(today time.Time) (time.Time, bool) {
	if date := n.part("date"); date != "" {
		day, err := time.Parse(time.DateOnly, date)
		return day, err == nil
	}
	if name := n.part("weekday"); name != "" {
		for ahead := 1; ahead < 7; ahead++ {
			if day := today.AddDate(0, 0, ahead); strings.ToLower(day.Weekday().String()) == name+"day" {
				return day, true
			}
		}
		return time.Time{}, false // today, or in a week
	}
	if month := n.part("month", "month2"); month != "" {
		return dateOf(month, n.part("day", "day2"), n.part("year", "year2"), today)
	}
	if unit := n.part("unit"); unit != "" {
		return after(today, numberOf(n.part("count")), unit), true
	}
	switch strings.TrimPrefix(n.part("tomorrow", "end", "only", "only2", "only3"), "this ") {
	case "today":
		return today, true
	case "tomorrow":
		return today.AddDate(0, 0, 1), true
	case "week":
		return today.AddDate(0, 0, (7-int(today.Weekday()))%7), true // its Sunday
	case "month":
		return today.AddDate(0, 1, -today.Day()), true
	case "year":
		return time.Date(today.Year(), time.December, 31, 0, 0, 0, 0, time.UTC), true
	}
	return time.Time{}, false
}

// numberOf is a number in figures or in words; a couple is 2.
func numberOf(text string) int {
	if number, err := strconv.Atoi(text); err == nil {
		return number
	}
	for i, word := range strings.Split(smallNumbers, "|") {
		if word == text {
			return i + 1
		}
	}
	return 2
}

func after(today time.Time, count int, unit string) time.Time {
	switch unit {
	case "week":
		return today.AddDate(0, 0, 7*count)
	case "month":
		return today.AddDate(0, count, 0)
	case "year":
		return today.AddDate(count, 0, 0)
	}
	return today.AddDate(0, 0, count)
}

// dateOf is a day of a month: without a year the next one.
func dateOf(name, day, year string, today time.Time) (time.Time, bool) {
	var month time.Month
	for m := time.January; m <= time.December; m++ {
		if strings.HasPrefix(strings.ToLower(m.String()), name[:3]) {
			month = m
		}
	}
	number, _ := strconv.Atoi(day)
	in := func(year int) (time.Time, bool) {
		found := time.Date(year, month, number, 0, 0, 0, 0, time.UTC)
		return found, found.Month() == month && found.Day() == number
	}
	if year != "" {
		named, _ := strconv.Atoi(year)
		return in(named)
	}
	found, ok := in(today.Year())
	if ok && found.Before(today) {
		return in(today.Year() + 1)
	}
	return found, ok
}

// LastDay is the last day, in UTC, of what ends at some time.
func LastDay(end time.Time) string { return end.Add(-1).UTC().Format(time.DateOnly) }
