package yamlform

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"
)

// Patterns of names, and their descriptions.
var (
	idPattern   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
	namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

const (
	idForm   = "a small letter, then small letters, digits, _ and -, 64 at most"
	nameForm = "a small letter, then small letters, digits and _, 64 at most"
)

// IsID reports whether a text can be the id of what a file describes.
func IsID(text string) bool { return idPattern.MatchString(text) && text != reservedID }

// DidYouMean suggests the nearest known name, or lists all of them if they are few.
func DidYouMean(text string, known []string) string {
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

// OrList is a, b or c.
func OrList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Quoted formats a name for a problem: bare if it has the form of one, quoted and truncated otherwise.
func Quoted(text string) string {
	plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/") == ""
	if plain && text != "" && len(text) <= 80 {
		return text
	}
	return fmt.Sprintf("%q", Shorten(text))
}

// Shorten truncates a text that a problem repeats.
func Shorten(text string) string {
	const most = 60 // characters
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
