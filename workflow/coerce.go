package workflow

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// reading is the result of reading a step's declared outputs from a text.
type reading struct {
	values   map[string]any // the valid fields
	problems []string       // one for each missing or invalid field
	repairs  []string       // corrections of values that were not exactly as declared
	present  int            // how many of the declared fields are there, valid or not
}

// readFields reads the declared fields from decoded JSON. A name or a value that is not exactly as declared but has
// only one meaning is accepted, with a note.
func readFields(fields []Field, values map[string]any) reading {
	r := reading{values: map[string]any{}}
	for _, field := range fields {
		value, there := r.member(field.Name, fields, values)
		if !there || value == nil {
			if there {
				r.present++
			}
			if !field.Optional {
				r.problems = append(r.problems, fmt.Sprintf("%s (%s) is missing", field.Name, field.Type))
			}
			continue
		}
		r.present++
		value, repair := field.coerce(value)
		read, problem := field.read(value)
		if problem != "" {
			r.problems = append(r.problems, field.Name+" "+problem)
			continue
		}
		if repair != "" {
			r.repairs = append(r.repairs, field.Name+" "+repair)
		}
		r.values[field.Name] = read
	}
	return r
}

// member finds a field's value under its name, or under the only name that differs from it in case and separators and
// is not another field's.
func (r *reading) member(name string, fields []Field, values map[string]any) (any, bool) {
	if value, there := values[name]; there {
		return value, true
	}
	found := ""
	for other := range values {
		if folded(other) != folded(name) || isField(other, fields) {
			continue
		}
		if found != "" {
			return nil, false
		}
		found = other
	}
	if found == "" {
		return nil, false
	}
	r.repairs = append(r.repairs, fmt.Sprintf("%q was read as %s", firstWords(found), name))
	return values[found], true
}

func isField(name string, fields []Field) bool {
	for _, field := range fields {
		if field.Name == name {
			return true
		}
	}
	return false
}

// separators are what models put between the words of a name.
var separators = strings.NewReplacer(" ", "", "_", "", "-", "")

// folded is a name without case and separators.
func folded(name string) string { return strings.ToLower(separators.Replace(strings.TrimSpace(name))) }

// coerce converts a value that has another form than the field's type to the intended one. The note is "" where
// nothing was changed.
func (f Field) coerce(value any) (meant any, repair string) {
	text, isText := value.(string)
	if !isText {
		return value, ""
	}
	trimmed := strings.TrimSpace(text)
	switch f.Type {
	case Number, Integer:
		if number, err := strconv.ParseFloat(trimmed, 64); err == nil && !math.IsInf(number, 0) && !math.IsNaN(number) {
			return number, fmt.Sprintf("was the string %q", firstWords(text))
		}
	case Boolean:
		if is := strings.ToLower(trimmed); is == "true" || is == "false" {
			return is == "true", fmt.Sprintf("was the string %q", firstWords(text))
		}
	case String:
		if option, ok := f.option(text); ok && option != text {
			return option, fmt.Sprintf("was %q", firstWords(text))
		}
	}
	return value, ""
}

// option finds the only value of the field's enum that a text can mean.
func (f Field) option(text string) (string, bool) {
	found := ""
	for _, word := range f.Enum {
		switch {
		case word == text:
			return word, true
		case folded(word) != folded(text):
		case found != "":
			return "", false
		default:
			found = word
		}
	}
	return found, found != ""
}

// firstWords shortens a model's text for a note.
func firstWords(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return text
}
