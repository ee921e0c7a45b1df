package yamlform

import (
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// mapping reads a mapping's keys. what is the mapping's name in problems. It returns nil for any other value.
func (r *Reader) mapping(v *yamltree.Node, what string, keys []string) map[string]*yamltree.Node {
	if v.Kind != yamltree.Mapping {
		r.Complain(v.At, "%s must be a mapping with the keys %s, not %s", what, strings.Join(keys, ", "), v.Kind)
		return nil
	}
	found := map[string]*yamltree.Node{}
	for _, field := range v.Fields {
		key := field.Key.Text
		switch {
		case !slices.Contains(keys, key):
			r.Complain(field.Key.At, "%s has no key %s%s", what, Quoted(key), DidYouMean(key, keys))
		case field.Value.Kind == yamltree.Null:
			r.Complain(field.Key.At, "%s has no value; write one, or remove the key", key)
		default:
			found[key] = field.Value
		}
	}
	return found
}

// Names reads a mapping of names and calls each for them.
func (r *Reader) Names(names Several, what string, each func(key, value *yamltree.Node)) {
	v := names.Node
	if v.Kind != yamltree.Mapping {
		r.Complain(v.At, "%s must be a mapping, one line for each name, not %s", what, v.Kind)
		return
	}
	if len(v.Fields) > names.Most {
		r.Complain(v.Fields[names.Most].Key.At, "there are %d %s, more than the limit of %d", len(v.Fields), what, names.Most)
		return
	}
	for _, field := range v.Fields {
		each(field.Key, field.Value)
	}
}

// Text reads a text, without surrounding white space.
func (r *Reader) Text(v *yamltree.Node, key string) string {
	switch {
	case v == nil:
		return ""
	case v.Kind == yamltree.Whole || v.Kind == yamltree.Number || v.Kind == yamltree.Bool:
		r.Complain(v.At, "%s must be a text; put %s in quotes", key, Quoted(v.Text))
	case v.Kind != yamltree.Text:
		r.Complain(v.At, "%s must be a text, not %s", key, v.Kind)
	case strings.TrimSpace(v.Text) == "":
		r.Complain(v.At, "%s is empty; write something, or remove the key", key)
	}
	if v.Kind != yamltree.Text {
		return ""
	}
	return strings.TrimSpace(v.Text)
}

// Line reads a text of one line.
func (r *Reader) Line(v *yamltree.Node, key string) string {
	return strings.Join(strings.Fields(r.Text(v, key)), " ")
}

// Bool reads true or false.
func (r *Reader) Bool(v *yamltree.Node, key string) bool {
	if v == nil {
		return false
	}
	if v.Kind != yamltree.Bool {
		r.Complain(v.At, "%s must be true or false, not %s", key, Quoted(v.Text))
		return false
	}
	return v.Text == "true" || v.Text == "True" || v.Text == "TRUE"
}

// Between reads an integer from least to most.
func (r *Reader) Between(v *yamltree.Node, key string, least, most int) int {
	if v == nil {
		return 0
	}
	n, err := strconv.Atoi(v.Text)
	if v.Kind != yamltree.Whole || err != nil || n < least || n > most {
		r.Complain(v.At, "%s must be a whole number from %d to %d", key, least, most)
		return 0
	}
	return n
}

// OneOf reads a text that must be one of several.
func (r *Reader) OneOf(v *yamltree.Node, key string, words ...string) string {
	text := r.Text(v, key)
	if text == "" || slices.Contains(words, text) {
		return text
	}
	near := ""
	if name := nearest.Name(text, words); name != "" {
		near = "; did you mean " + name + "?"
	}
	r.Complain(v.At, "%s cannot be %s; write %s%s", key, Quoted(text), OrList(words), near)
	return ""
}

// Texts reads a list of texts of one line each.
func (r *Reader) Texts(v *yamltree.Node, key string) []string {
	if v == nil {
		return nil
	}
	if v.Kind != yamltree.List {
		r.Complain(v.At, "%s must be a list of texts, not %s", key, v.Kind)
		return nil
	}
	texts := []string{}
	for _, item := range v.Items {
		if text := r.Line(item, "each of "+key); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// Name checks the form of a name that the file gives.
func (r *Reader) Name(key *yamltree.Node, what string) bool {
	if namePattern.MatchString(key.Text) {
		return true
	}
	r.Complain(key.At, "%s cannot be called %s: names are %s", what, Quoted(key.Text), nameForm)
	return false
}

// Known reads the name of something that the settings define.
func (r *Reader) Known(v *yamltree.Node, what string, known []string) string {
	name := r.Text(v, what)
	switch {
	case name == "" || r.Any || slices.Contains(known, name):
		return name
	case len(known) == 0:
		r.Complain(v.At, "unknown %s %s: none is defined; %ss are defined in the settings", what, Quoted(name), what)
	default:
		r.Complain(v.At, "unknown %s %s%s; %ss are defined in the settings", what, Quoted(name), DidYouMean(name, known), what)
	}
	return ""
}
