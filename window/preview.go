package window

import (
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// previewOf shows the head and the tail of a text, two thirds and one third of about limit characters,
// cut between lines where there are any, and where the whole is.
func previewOf(text string, limit int, ref string) string {
	head := cutHead(text, limit*2/3)
	return continuo.Preview{
		Head: head, Tail: cutTail(text[len(head):], limit/3), Full: ref,
		Chars: utf8.RuneCountInString(text), Bytes: int64(len(text)), Lines: strings.Count(text, "\n") + 1,
	}.String()
}

// shorter cuts a preview down as previewOf would cut the whole, as far as the preview goes.
func shorter(p continuo.Preview, limit int) continuo.Preview {
	p.Head, p.Tail = cutHead(p.Head, limit*2/3), cutTail(p.Tail, limit/3)
	return p
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
