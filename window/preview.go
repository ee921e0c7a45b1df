package window

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// previewOf shows the head and the tail of a text, two thirds and one third of about limit characters,
// cut between lines where there are any.
func previewOf(text string, limit int) string {
	head := cutHead(text, limit*2/3)
	tail := cutTail(text[len(head):], limit/3)
	omitted := text[len(head) : len(text)-len(tail)]
	return fmt.Sprintf("TOOL_RESULT_PREVIEW (%d characters in %d lines; head and tail are shown)\n%s\n[... %d characters left out ...]\n%s",
		utf8.RuneCountInString(text), strings.Count(text, "\n")+1,
		strings.TrimRight(head, "\n"), utf8.RuneCountInString(omitted), strings.TrimLeft(tail, "\n"))
}

// cutHead returns at most limit characters from the beginning: whole lines if that keeps at least half
// of them, else whole characters.
func cutHead(text string, limit int) string {
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

// cutTail is cutHead for the end of a text.
func cutTail(text string, limit int) string {
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
