package plaintext

import (
	"strings"
	"unicode/utf8"
)

// Head returns at most limit characters from the beginning of a text: whole lines if that keeps at least half of them,
// else whole characters.
func Head(text string, limit int) string {
	end := len(text)
	for i := range text {
		if limit == 0 {
			end = i
			break
		}
		limit--
	}
	head := text[:end]
	if end == len(text) {
		return head
	}
	if lineEnd := strings.LastIndexByte(head, '\n') + 1; lineEnd*2 >= end {
		return head[:lineEnd]
	}
	return head
}

// Tail is Head for the end of a text.
func Tail(text string, limit int) string {
	begin := len(text)
	for begin > 0 && limit > 0 {
		_, width := utf8.DecodeLastRuneInString(text[:begin])
		begin -= width
		limit--
	}
	tail := text[begin:]
	if lineBegin := strings.IndexByte(tail, '\n') + 1; lineBegin > 0 && lineBegin*2 <= len(tail) {
		return tail[lineBegin:]
	}
	return tail
}
