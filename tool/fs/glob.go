package fs

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// glob is a pattern for names: * and ? within a name, ** over folders, {a,b} for either. A pattern without
// "/" applies to the last element of a path. The zero value matches everything.
type glob struct {
	whole    *regexp.Regexp
	lastOnly bool
}

func newGlob(pattern string) (glob, error) {
	if pattern == "" {
		return glob{}, nil
	}
	if len(pattern) > 500 {
		return glob{}, fmt.Errorf("include has %d bytes, more than the limit of 500", len(pattern))
	}
	var text strings.Builder
	braces := 0
	for rest := pattern; rest != ""; {
		var token string
		token, rest = nextToken(rest)
		switch {
		case token == "**/":
			text.WriteString("(?:.*/)?")
		case token == "**":
			text.WriteString(".*")
		case token == "*":
			text.WriteString("[^/]*")
		case token == "?":
			text.WriteString("[^/]")
		case token == "{":
			braces++
			text.WriteString("(?:")
		case token == "}" && braces > 0:
			braces--
			text.WriteString(")")
		case token == "," && braces > 0:
			text.WriteString("|")
		default:
			text.WriteString(regexp.QuoteMeta(token))
		}
	}
	whole, err := regexp.Compile(`^(?s:` + text.String() + `)$`)
	if err != nil {
		return glob{}, fmt.Errorf(`include %q cannot be read; write it as "*.go", "cmd/**/*.md" or "*.{js,ts}"`, pattern)
	}
	return glob{whole: whole, lastOnly: !strings.Contains(pattern, "/")}, nil
}

// nextToken returns "**/", "**" or one character.
func nextToken(pattern string) (token, rest string) {
	for _, token := range []string{"**/", "**"} {
		if rest, ok := strings.CutPrefix(pattern, token); ok {
			return token, rest
		}
	}
	for i := range pattern {
		if i > 0 {
			return pattern[:i], pattern[i:]
		}
	}
	return pattern, ""
}

// match reports whether the pattern matches a name.
func (g glob) match(name string) bool {
	if g.whole == nil {
		return true
	}
	if g.lastOnly {
		name = path.Base(name)
	}
	return g.whole.MatchString(name)
}
