package brief

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// Hash is a short hash of a text, in hex.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Shorten cuts a text to a number of characters.
func Shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
