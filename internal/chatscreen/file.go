package chatscreen

import (
	"path/filepath"
	"strings"
)

// MediaType is the media type of an image by its name; "" for everything else.
func MediaType(name string) string {
	return map[string]string{
		".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	}[strings.ToLower(filepath.Ext(name))]
}

// Mention names a file in a message.
func Mention(name string) string {
	if strings.ContainsAny(name, " \t") {
		return `@"` + name + `"`
	}
	return "@" + name
}

// Mentions are the names that follow an @ at the beginning of a word.
func Mentions(message string) (names []string) {
	for i := 0; i < len(message); i++ {
		if message[i] != '@' || i > 0 && !strings.ContainsRune(" \t\n(", rune(message[i-1])) {
			continue
		}
		rest := message[i+1:]
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			if name, _, ok := strings.Cut(quoted, `"`); ok {
				names = append(names, name)
			}
			continue
		}
		name := rest
		if end := strings.IndexAny(rest, " \t\n"); end >= 0 {
			name = rest[:end]
		}
		if name = strings.TrimRight(name, ".,;:!?)"); name != "" {
			names = append(names, name)
		}
	}
	return names
}
