// Package secret removes secrets from text that is shown or stored: errors of agents and of upstreams, stderr of
// programs, log events. It recognizes the formats of common keys, and the values in a program's environment.
//
// Pitfalls: a key in an unknown format is found only if it is a value of the environment. Text is for messages about
// failures, not for what people and models write.
package secret

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Mark replaces a secret.
const Mark = "[redacted]"

// Redactor removes the values that it was given, and whatever has the format of a key. The zero value and nil have no
// values. It is safe for concurrent use.
type Redactor struct {
	values *strings.Replacer
}

// minValue is the least length in bytes of a value to search for: a shorter one would be found in ordinary words.
const minValue = 6

// New makes a Redactor of values. Short ones are ignored.
func New(values ...string) *Redactor {
	values = slices.DeleteFunc(slices.Clone(values), func(value string) bool { return len(value) < minValue })
	if len(values) == 0 {
		return &Redactor{}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // one may contain another
	var pairs []string
	for _, value := range values {
		pairs = append(pairs, value, Mark)
	}
	return &Redactor{values: strings.NewReplacer(pairs...)}
}

// sensitive matches the names of variables that contain secrets.
var sensitive = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION)S?(_|$)`)

// FromEnv makes a Redactor of the values of those variables whose names suggest secrets. env is in the form of
// os.Environ.
func FromEnv(env []string) *Redactor {
	var values []string
	for _, pair := range env {
		if name, value, ok := strings.Cut(pair, "="); ok && sensitive.MatchString(name) {
			values = append(values, value)
		}
	}
	return New(values...)
}

// Text returns a text without secrets.
func (r *Redactor) Text(text string) string {
	if r != nil && r.values != nil {
		text = r.values.Replace(text)
	}
	return Text(text)
}

// forms are the recognizable formats of keys. A group in one is kept before the mark.
var forms = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}`),
	regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|hf_|npm_|pypi-|gsk_|xai-|dop_v1_)[A-Za-z0-9_-]{16,}`),
	regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{10,}`),
	regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`),
	regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`),
	regexp.MustCompile(`\d{6,12}:[A-Za-z0-9_-]{30,}`), // a bot of Telegram
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`([a-z][a-z0-9+.-]*://[^\s/@:]*:)[^\s/@]+(?:@)`), // a password in an address
	regexp.MustCompile(`(?i)(\b[a-z0-9_-]*(?:api[_-]?key|access[_-]?key|token|secret|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',;&)}\[\]]{8,}`),
}

// Text returns a text without anything that has the format of a key.
func Text(text string) string {
	for _, form := range forms {
		text = form.ReplaceAllString(text, "${1}"+Mark)
	}
	return text
}
