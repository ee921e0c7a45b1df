package config

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// mapping is a mapping of names to texts.
type mapping struct {
	target *map[string]string
	noun   string // precedes a name in errors: "" or "the header "
	name   func(given string) (string, error)
	// plain mappings take no ${NAME}, and refuse every name that carries secrets, for which advice says where they belong.
	plain  bool
	advice string
}

// mappings is a mapping of the kind "variables", "headers" or "plain_headers". Of a mapping only the names are shown.
func mappings(target *map[string]string, kind string) value {
	m := &mapping{
		target: target, noun: "the header ", name: headerName,
		advice: "secrets are never written in the file: write ${NAME} for the environment variable that holds it",
	}
	v := value{
		takes: []yamltree.Kind{yamltree.Mapping}, hidden: true, mapping: m,
		show: func() string { return strings.Join(slices.Sorted(maps.Keys(*target)), ", ") },
	}
	switch kind {
	case "variables":
		m.noun, m.name = "", variableName
		v.allowed = "a mapping of names of variables to texts, in which ${NAME} is replaced by a variable of Continuo's own environment"
	case "headers":
		v.allowed = "a mapping of header names to texts, in which ${NAME} is replaced by a variable of Continuo's environment"
	case "plain_headers":
		m.plain, m.advice = true, "keys are never written in the file: name the variable that holds the key in api_key_env"
		v.allowed = "a mapping of header names to texts"
	default:
		panic(fmt.Sprintf("config: no kind of mapping is called %q", kind))
	}
	return v
}

// setMapping applies a mapping to its setting. Its errors never repeat the given texts.
func (r *fileReader) setMapping(row *setting, given *yamltree.Node) {
	switch given.Kind {
	case yamltree.Null:
		return
	case yamltree.Mapping:
	default:
		r.problems.add(r.at(given), "%s: not a mapping; allowed: %s", row.key, row.value.allowed)
		return
	}
	row.origin = r.at(given)
	m := row.value.mapping
	for _, f := range given.Fields {
		name, err := m.name(f.Key.Text)
		_, twice := (*m.target)[name]
		switch {
		case err != nil:
			r.problems.add(r.at(f.Key), "%s: %s: %w", row.key, keyText(f.Key.Text), err)
		case f.Value.Kind != yamltree.Text:
			r.problems.add(r.at(f.Value), "%s: the value of %s is no text; put it in quotes", row.key, keyText(f.Key.Text))
		case twice:
			r.problems.add(r.at(f.Key), "%s: %s%s is there twice", row.key, m.noun, name)
		case m.wouldHoldSecret(name, f.Value.Text):
			r.problems.add(r.at(f.Key), "%s: %s looks as if it carried a secret; %s", row.key, name, m.advice)
		default:
			r.setMapped(row, name, f.Value)
		}
	}
}

func (r *fileReader) setMapped(row *setting, name string, given *yamltree.Node) {
	m := row.value.mapping
	text, unset := given.Text, []string(nil)
	if !m.plain {
		text, unset = fillIn(text, r.env)
	}
	row.unset = append(row.unset, unset...)
	if !isLine(text) || strings.TrimSpace(text) != text && len(unset) == 0 {
		r.problems.add(r.at(given), "%s: the value of %s is not one line of text without spaces around it", row.key, name)
	}
	(*m.target)[name] = text
}

func (m *mapping) wouldHoldSecret(name, text string) bool {
	if m.plain {
		lower := strings.ToLower(name)
		return looksSecret(name) || strings.Contains(lower, "auth") || strings.Contains(lower, "key")
	}
	return looksSecret(name) && !reference.MatchString(text)
}

// looksSecret reports whether a variable or a header of that name usually contains a secret.
func looksSecret(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for _, part := range []string{"token", "secret", "password", "cookie", "authorization", "api_key", "apikey", "credential"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "_key") || strings.HasSuffix(name, "_auth")
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// fillIn replaces each ${NAME} by the variable's value and returns the variables that are not set.
func fillIn(text string, env map[string]string) (filled string, unset []string) {
	filled = reference.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		if env[name] == "" {
			unset = append(unset, name)
		}
		return env[name]
	})
	return filled, unset
}

func variableName(name string) (string, error) {
	if name == "" || len(name) > 200 || strings.ContainsAny(name, "= ") || !isLine(name) {
		return "", errors.New("not a name of an environment variable")
	}
	return name, nil
}

func headerName(name string) (string, error) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenRune(r) }) {
		return "", errors.New("not a header name; allowed: letters, digits and -")
	}
	return http.CanonicalHeaderKey(name), nil
}

// isTokenRune reports whether r is allowed in a header name (RFC 9110, section 5.6.2).
func isTokenRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
