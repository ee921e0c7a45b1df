package workflow

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"
)

// Patterns of names, and what they ask for in words.
var (
	idPattern   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
	namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

const (
	idForm   = "a small letter, then small letters, digits, _ and -, 64 at most"
	nameForm = "a small letter, then small letters, digits and _, 64 at most"
)

// mapping reads a mapping's keys. What names the mapping in complaints. It returns nil for anything else.
func (r *reader) mapping(v *yamlValue, what string, keys ...string) map[string]*yamlValue {
	if v.kind != yamlMapping {
		r.complain(v.at, "%s must be a mapping with the keys %s, not %s", what, strings.Join(keys, ", "), v.kind)
		return nil
	}
	found := map[string]*yamlValue{}
	for _, field := range v.fields {
		key := field.key.text
		switch {
		case !slices.Contains(keys, key):
			r.complain(field.key.at, "%s has no key %s%s", what, word(key), didYouMean(key, keys))
		case field.value.kind == yamlNull:
			r.complain(field.key.at, "%s has no value; write one, or remove the key", key)
		default:
			found[key] = field.value
		}
	}
	return found
}

// names reads a mapping of names, of which there may be up to most, to something.
func (r *reader) names(v *yamlValue, what string, most int, each func(key, value *yamlValue)) {
	if v.kind != yamlMapping {
		r.complain(v.at, "%s must be a mapping, one line for each name, not %s", what, v.kind)
		return
	}
	if len(v.fields) > most {
		r.complain(v.fields[most].key.at, "there are %d %s, more than the limit of %d", len(v.fields), what, most)
		return
	}
	for _, field := range v.fields {
		each(field.key, field.value)
	}
}

// read* return the value of a key, or the zero value where there is none or it is of another type, which they
// complain about.

func (r *reader) readText(v *yamlValue, key string) string {
	switch {
	case v == nil:
		return ""
	case v.kind == yamlWhole || v.kind == yamlNumber || v.kind == yamlBool:
		r.complain(v.at, "%s must be a text; put %s in quotes", key, word(v.text))
	case v.kind != yamlText:
		r.complain(v.at, "%s must be a text, not %s", key, v.kind)
	case strings.TrimSpace(v.text) == "":
		r.complain(v.at, "%s is empty; write something, or remove the key", key)
	}
	if v.kind != yamlText {
		return ""
	}
	return strings.TrimSpace(v.text)
}

// readLine reads a text that is shown on one line.
func (r *reader) readLine(v *yamlValue, key string) string {
	return strings.Join(strings.Fields(r.readText(v, key)), " ")
}

func (r *reader) readBool(v *yamlValue, key string) bool {
	if v == nil {
		return false
	}
	if v.kind != yamlBool {
		r.complain(v.at, "%s must be true or false, not %s", key, word(v.text))
		return false
	}
	return v.text == "true" || v.text == "True" || v.text == "TRUE"
}

// readCount reads a whole number from 1 to most.
func (r *reader) readCount(v *yamlValue, key string, most int) int {
	if v == nil {
		return 0
	}
	n, err := strconv.Atoi(v.text)
	if v.kind != yamlWhole || err != nil || n < 1 || n > most {
		r.complain(v.at, "%s must be a whole number from 1 to %d", key, most)
		return 0
	}
	return n
}

// readWord reads a text that must be one of several.
func (r *reader) readWord(v *yamlValue, key string, words ...string) string {
	text := r.readText(v, key)
	if text == "" || slices.Contains(words, text) {
		return text
	}
	near := ""
	if name := nearest.Name(text, words); name != "" {
		near = "; did you mean " + name + "?"
	}
	r.complain(v.at, "%s cannot be %s; write %s%s", key, word(text), orList(words), near)
	return ""
}

func (r *reader) readTexts(v *yamlValue, key string) []string {
	if v == nil {
		return nil
	}
	if v.kind != yamlList {
		r.complain(v.at, "%s must be a list of texts, not %s", key, v.kind)
		return nil
	}
	texts := []string{}
	for _, item := range v.items {
		if text := r.readLine(item, "each of "+key); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// readName checks the form of a name that the file gives.
func (r *reader) readName(key *yamlValue, what string) bool {
	if namePattern.MatchString(key.text) {
		return true
	}
	r.complain(key.at, "%s cannot be called %s: names are %s", what, word(key.text), nameForm)
	return false
}

// readKnown reads the name of something that the settings define.
func (r *reader) readKnown(v *yamlValue, what string, known []string) string {
	name := r.readText(v, what)
	switch {
	case name == "" || r.known.Any || slices.Contains(known, name):
		return name
	case len(known) == 0:
		r.complain(v.at, "unknown %s %s: there is none; %ss stand in the settings", what, word(name), what)
	default:
		r.complain(v.at, "unknown %s %s%s; %ss stand in the settings", what, word(name), didYouMean(name, known), what)
	}
	return ""
}

// didYouMean names the nearest of what there is, or all of it when it is not much.
func didYouMean(text string, known []string) string {
	if near := nearest.Name(text, known); near != "" {
		return "; did you mean " + near + "?"
	}
	const few = 12
	switch {
	case len(known) == 0:
		return "; there are none"
	case len(known) > few:
		return ""
	}
	return "; there are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// orList is a, b or c.
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// word shows a name in a complaint: bare when it looks like one, quoted and cut otherwise.
func word(text string) string {
	plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/") == ""
	if plain && text != "" && len(text) <= 80 {
		return text
	}
	return fmt.Sprintf("%q", shorten(text))
}
