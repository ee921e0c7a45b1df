package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// hashOf is a short hash of a text, in hex.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// shorten cuts a text to a number of characters.
func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
