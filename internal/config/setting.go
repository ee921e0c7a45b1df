package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// Setting is one key for a person to read.
type Setting struct {
	Key string
	// Value is the effective value, as it would be written; Default is the value without any setting. In a Schema there
	// is no Value, and Default may be a phrase.
	Value   string
	Default string
	Origin  Origin
	Doc     string // what it means, in sentences
	KnownAs string // its name in other documents; "" for none
	Allowed string // the allowed values
	Env     string // the variable that sets it; "" if only the file does
}

// setting is one row of the table: a key and the variable that it sets.
type setting struct {
	key     string
	value   value
	def     string // the default, as it would be written
	phrase  string // describes the default where def cannot; "" otherwise
	example string // for the example file, where the default is unsuitable; "" otherwise
	doc     string
	knownAs string
	env     string // the variable that sets it; "" if only the file does
	origin  Origin
	unset   []string // the variables that the given value refers to and that are not set
}

// rawValue is a value as it was written in its source.
type rawValue struct {
	kind   yamltree.Kind // untyped for the environment and flags, where all values are text
	text   string
	items  []string // of a list
	origin Origin
}

// apply parses a given value into the setting's variable. On an error the variable is unchanged.
func (s *setting) apply(g rawValue) error {
	err := s.value.read(g)
	switch {
	case errors.Is(err, errNotAllowed):
		return fmt.Errorf("%s: given %s; allowed: %s", s.key, s.value.repeat(g), s.value.allowed)
	case err != nil:
		return fmt.Errorf("%s: given %s: %w", s.key, s.value.repeat(g), err)
	}
	s.origin = g.origin
	return nil
}

// setDefault replaces the default, and the value too unless one was given.
func (s *setting) setDefault(def string) {
	s.def = def
	if s.origin.Kind == FromDefault {
		s.mustRead(def)
	}
}

// mustRead parses a default; a test checks that every default is valid.
func (s *setting) mustRead(text string) {
	if err := s.value.read(rawValue{text: text}); err != nil {
		panic(fmt.Sprintf("config: default of %s: %v", s.key, err))
	}
}

// read checks the kind of a given value and parses it.
func (v value) read(g rawValue) error {
	if g.kind != untyped && !slices.Contains(v.takes, g.kind) {
		return errNotAllowed
	}
	if v.setList == nil {
		return v.set(g.text)
	}
	if g.kind == untyped {
		g.items = v.split(g.text)
	}
	return v.setList(g.items)
}

// split reads a list that is one text: items separated by commas, or a list as YAML has it, [a, "b"]. Brackets around a single
// item are a part of it where an item may have some.
func (v value) split(text string) []string {
	text = strings.TrimSpace(text)
	inner, quotes := text, ""
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		inner = strings.TrimSpace(text[1 : len(text)-1])
	}
	if inner != text && !strings.ContainsAny(inner, "[]") && (v.names || strings.Contains(inner, ",")) {
		text, quotes = inner, `"'`
	}
	items := []string{}
	if text == "" {
		return items
	}
	for item := range strings.SplitSeq(text, ",") {
		items = append(items, strings.Trim(strings.TrimSpace(item), quotes))
	}
	return items
}

// repeat formats the given value for an error, without the text where it may be a secret.
func (v value) repeat(g rawValue) string {
	switch {
	case g.kind == yamltree.Whole && !v.hidden, g.kind == yamltree.Number && !v.hidden, g.kind == yamltree.Bool && !v.hidden:
		return g.text
	case g.kind == yamltree.Null:
		return "nothing"
	case g.kind == yamltree.List && !v.hidden && len(g.items) > 0:
		return "the list " + quoted(strings.Join(g.items, ", "))
	case g.kind == yamltree.List:
		return "a list"
	case g.kind == yamltree.Mapping:
		return "a mapping"
	case v.hidden:
		return fmt.Sprintf("a text of %d characters (not repeated, it may be secret)", utf8.RuneCountInString(g.text))
	case g.kind == yamltree.Text:
		return "the text " + quoted(g.text)
	default:
		return quoted(g.text)
	}
}

// public is the setting in the form for display.
func (s *setting) public() Setting {
	return Setting{
		Key: s.key, Value: s.value.show(), Default: s.def, Origin: s.origin, Doc: s.doc, KnownAs: s.knownAs,
		Allowed: s.value.allowed, Env: s.env,
	}
}

const envPrefix = "CONTINUO_"

// envName is the variable that sets a key: context.max_messages has CONTINUO_CONTEXT_MAX_MESSAGES.
func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}
