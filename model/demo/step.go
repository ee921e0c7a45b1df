package demo

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// step is what the system messages say about the workflow step of a request.
type step struct {
	run     string
	name    string // the id, and the name in brackets
	visit   int    // at least 1
	brief   string
	outputs []field
	inputs  []shown
	earlier []shown // the outputs of earlier steps
}

// field is an output that a step must return.
type field struct {
	name, kind string
	enum       []string
}

// shown is something that a step was shown: its name, its text, and its original form.
type shown struct{ name, text, raw string }

// parseStep reads the texts of a step; nil when no system message begins with NODE_BRIEF. It ignores parts
// that it cannot read.
func parseStep(systems []string) *step {
	var found *step
	for _, text := range systems {
		if title, rest, _ := strings.Cut(strings.TrimSpace(text), "\n"); strings.TrimSpace(title) == "NODE_BRIEF" {
			found = &step{visit: 1}
			found.readBrief(rest)
		}
	}
	if found == nil {
		return nil
	}
	for _, text := range systems {
		switch title, rest, _ := strings.Cut(strings.TrimSpace(text), "\n"); strings.TrimSpace(title) {
		case "RUN_DIRECTIVE":
			found.readDirective(rest)
		case "STEP_CONTEXT":
			found.inputs, found.earlier = items(rest, "inputs:"), items(rest, "outputs of earlier steps:")
		}
	}
	return found
}

func (s *step) readDirective(text string) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), ": ")
		switch key {
		case "run":
			s.run = value
		case "step":
			s.name = value
		case "visit":
			if visit, err := strconv.Atoi(value); err == nil && visit > 0 {
				s.visit = visit
			}
		}
	}
}

var outputLine = regexp.MustCompile(`^- ([A-Za-z0-9_]+) \(([a-z]+)`)

// readBrief splits the brief's message into parts. The last occurrence of each part's title counts, so that a
// brief may contain such lines.
func (s *step) readBrief(text string) {
	brief, outputs := cutLast(text, "OUTPUTS")
	s.brief, _ = cutLast(brief, "SUCCESS_CRITERIA")
	for line := range strings.Lines(outputs) {
		if at := outputLine.FindStringSubmatchIndex(line); at != nil {
			s.outputs = append(s.outputs, field{line[at[2]:at[3]], line[at[4]:at[5]], enumIn(line[at[5]:])})
		}
	}
}

// cutLast cuts a text at the last line that is a title.
func cutLast(text, title string) (before, after string) {
	at := strings.LastIndex("\n"+text, "\n"+title+"\n")
	if at < 0 {
		return text, ""
	}
	return text[:at], text[min(at+len(title)+1, len(text)):]
}

// enumIn reads the values after "one of" in the brackets of an output.
func enumIn(text string) []string {
	_, rest, found := strings.Cut(text, "one of ")
	if bracket := strings.IndexByte(text, ')'); !found || bracket >= 0 && bracket < strings.Index(text, "one of ") {
		return nil
	}
	var values []string
	for {
		decoder := json.NewDecoder(strings.NewReader(rest))
		var value string
		if decoder.Decode(&value) != nil {
			return values
		}
		values = append(values, value)
		if rest, found = strings.CutPrefix(rest[decoder.InputOffset():], ", "); !found {
			return values
		}
	}
}

// items reads the list below a title. A string is listed as its text, another value as its JSON.
func items(text, title string) []shown {
	var list []shown
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		item, isItem := strings.CutPrefix(line, "- ")
		if !isItem {
			inside = line == title
			continue
		}
		if name, value, ok := strings.Cut(item, ": "); ok && inside {
			list = append(list, shown{name, plain(value), value})
		}
	}
	return list
}

// plain returns a JSON value as text: a string's text, the first string in a list or an object.
func plain(value string) string {
	var decoded any
	if json.Unmarshal([]byte(value), &decoded) != nil {
		return value
	}
	if text := firstString(decoded); text != "" {
		return text
	}
	return value
}
