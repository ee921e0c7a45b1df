package fs

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	aliasProject = "@project"
	aliasState   = "@state"
	// maxPath bounds a path, in bytes; it is Linux's limit.
	maxPath = 4096
)

// splitPath checks a path as text and splits it into its alias and the name below it, which is "" or names
// with one "/" between them, none of them ".", "..", or empty. Names that some systems interpret differently
// are refused on all systems: backslashes, drive letters, names of dots and spaces only, control characters.
func splitPath(path string) (alias, name string, err error) {
	switch {
	case path == "":
		return "", "", errors.New("the path is empty")
	case len(path) > maxPath:
		return "", "", fmt.Errorf("the path has %d bytes, more than the limit of %d", len(path), maxPath)
	case !utf8.ValidString(path):
		return "", "", errors.New("the path is not valid UTF-8")
	case strings.ContainsFunc(path, unicode.IsControl):
		return "", "", errors.New("the path has a control character in it")
	case strings.Contains(path, `\`):
		return "", "", errors.New(`the path has a backslash in it; folders are divided by "/"`)
	}
	alias, rest, _ := strings.Cut(path, "/")
	if alias != aliasProject && alias != aliasState {
		return "", "", fmt.Errorf("the path begins with neither %s/ nor %s/ (small letters)", aliasProject, aliasState)
	}
	name, err = cleanName(rest)
	return alias, name, err
}

// cleanName checks the name below an alias and drops "." and a trailing "/".
func cleanName(name string) (string, error) {
	var parts []string
	name = strings.TrimSuffix(name, "/")
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "." || name == "":
			continue
		case part == "":
			return "", errors.New(`the path has an empty name in it ("//")`)
		case strings.Trim(part, ". ") == "":
			return "", fmt.Errorf("the path has %q in it, which could lead out of its folder; write it without", part)
		case len(part) == 2 && part[1] == ':':
			return "", fmt.Errorf("the path has the drive %s in it", part)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "/"), nil
}
