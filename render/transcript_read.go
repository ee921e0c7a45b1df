package render

import (
	"fmt"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// ReadTranscript parses the output of Transcript.String and returns an equal transcript. It refuses any other
// text, naming the line: writing the result again gives the same bytes.
func ReadTranscript(text string) (Transcript, error) {
	t, err := parseTranscript(text)
	if err != nil {
		return Transcript{}, fmt.Errorf("read transcript: %w: %w", continuo.ErrInvalid, err)
	}
	if again := t.String(); again != text {
		return Transcript{}, fmt.Errorf("read transcript: %w: line %d is not written as a transcript has it: see transcript.md", continuo.ErrInvalid, differingLine(text, again))
	}
	return t, nil
}

func parseTranscript(text string) (Transcript, error) {
	var t Transcript
	rest, ok := strings.CutPrefix(text, historyHeader+"\n")
	if !ok {
		return t, fmt.Errorf("line 1 must be %s", historyHeader)
	}
	if strings.HasPrefix(rest, "(") {
		line, after, _ := strings.Cut(rest, "\n")
		if t.Shown, t.Total, ok = parseCount(line); !ok {
			return t, fmt.Errorf("line 2 must be empty or like %q", countLine(15, 73, false))
		}
		rest = after
	}
	events := &t.History
	for rest != "" {
		block := strings.TrimPrefix(rest, "\n") // the empty line before it
		end := blockEnd(block)
		if block[:end] == currentHeader {
			events = &t.Current
		} else {
			event, ok := parseEvent(block[:end])
			if !ok {
				return t, fmt.Errorf("line %d must begin an event or the section %s", lineOf(text, len(text)-len(block)), currentHeader)
			}
			*events = append(*events, event)
		}
		rest = strings.TrimPrefix(block[end:], "\n")
	}
	return t, nil
}

// blockEnd returns where the event or section at the beginning of text ends: before the line ends that
// separate it from the next, or that end the text.
func blockEnd(text string) int {
	for at := 0; ; {
		next := strings.Index(text[at:], "\n\n")
		if next < 0 {
			return len(strings.TrimSuffix(text, "\n"))
		}
		at += next
		line, _, _ := strings.Cut(text[at+2:], "\n")
		if _, ok := parseEvent(line); ok || line == currentHeader {
			return at
		}
		at++
	}
}

// parseEvent reads an event; ok is false when the text does not begin with one.
func parseEvent(text string) (event Event, ok bool) {
	if number, ok := parseGap(text); ok {
		return Event{Kind: EventGap, Text: number}, true
	}
	for _, kind := range eventKinds() {
		if rest, ok := strings.CutPrefix(text, "$"+string(kind)+":"); ok {
			return Event{Kind: kind, Text: unescape(strings.TrimPrefix(rest, " "))}, true
		}
	}
	return Event{}, false
}

func parseCount(line string) (shown, total int64, ok bool) {
	numbers, opened := strings.CutPrefix(line, "(showing ")
	numbers = strings.TrimPrefix(numbers, "last ")
	numbers, closed := strings.CutSuffix(numbers, " messages)")
	first, second, split := strings.Cut(numbers, " of ")
	shown, err1 := strconv.ParseInt(first, 10, 64)
	total, err2 := strconv.ParseInt(second, 10, 64)
	return shown, total, opened && closed && split && err1 == nil && err2 == nil
}

// parseGap reads a line that marks a gap.
func parseGap(text string) (number string, ok bool) {
	if text == gapLine("") {
		return "", true
	}
	number, isGap := strings.CutPrefix(text, "(")
	number, _, _ = strings.Cut(number, " ")
	left, err := strconv.ParseUint(number, 10, 63)
	return number, isGap && err == nil && left > 0 && text == gapLine(number)
}

// differingLine returns the number of the first line, from 1, in which two texts differ.
func differingLine(a, b string) int {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return lineOf(a, at)
}

// lineOf returns the number of the line, from 1, that contains a byte.
func lineOf(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }
