package workflow

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// reading is what a text of a step gives of its declared outputs.
type reading struct {
	values   map[string]any // the fields that are right
	problems []string       // one for each that is missing or wrong
	repairs  []string       // what was read although it is not exactly what was asked for
	present  int            // how many of the declared fields are there, right or wrong
}

// readFields reads the declared fields out of decoded JSON. Where a name or a value is not exactly what was asked for
// but has one meaning, it is taken, with a note.
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

// member finds a field's value under its name, or under the one name that differs from it in case and separators only
// and is no other field's.
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
	r.repairs = append(r.repairs, fmt.Sprintf("%q was read as %s", shortWord(found), name))
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

// coerce makes a value that has the field's type in another form the one that was meant. The note is "" where nothing
// was done.
func (f Field) coerce(value any) (meant any, repair string) {
	text, isText := value.(string)
	if !isText {
		return value, ""
	}
	trimmed := strings.TrimSpace(text)
	switch f.Type {
	case Number, Integer:
		if number, err := strconv.ParseFloat(trimmed, 64); err == nil && !math.IsInf(number, 0) && !math.IsNaN(number) {
			return number, fmt.Sprintf("was the string %q", shortWord(text))
		}
	case Boolean:
		if is := strings.ToLower(trimmed); is == "true" || is == "false" {
			return is == "true", fmt.Sprintf("was the string %q", shortWord(text))
		}
	case String:
		if option, ok := f.option(text); ok && option != text {
			return option, fmt.Sprintf("was %q", shortWord(text))
		}
	}
	return value, ""
}

// option finds the one word of the field's enum that a text can mean.
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

// shortWord bounds a word of a model in a note.
func shortWord(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return text
}
