// Package secret removes secrets from text that is shown or stored: errors of agents and of upstreams, what programs write
// on stderr, log events. It knows the forms of common keys, and the values that a program's environment holds.
//
// Pitfalls: a key in a form that nobody knows is found only where it is a value of the environment. Text is for messages
// about failures, not for what people and models say.
package secret

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Mark stands in the place of a secret.
const Mark = "[redacted]"

// Redactor removes the values that it knows, and whatever has the form of a key. The zero value and nil know no values. It
// is safe for concurrent use.
type Redactor struct {
	values *strings.Replacer
}

// minValue is how many bytes a value has at least that is searched for: a shorter one would be found in ordinary words.
const minValue = 6

// New makes a Redactor of values. Short ones are left out.
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

// sensitive is what the name of a variable says that holds a secret.
var sensitive = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION)S?(_|$)`)

// FromEnv makes a Redactor of the values of those variables whose names say that they hold secrets. env is as os.Environ
// gives it.
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

// forms are the forms of keys that are known by themselves. Where one has a group, the group is what stays in front.
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

// Text returns a text without what has the form of a key.
func Text(text string) string {
	for _, form := range forms {
		text = form.ReplaceAllString(text, "${1}"+Mark)
	}
	return text
}
