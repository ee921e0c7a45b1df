package window

import (
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/plaintext"
)

// previewOf shows the head and the tail of a text, two thirds and one third of about limit characters,
// cut between lines where there are any, and where the whole is.
func previewOf(text string, limit int, ref string) string {
	head := plaintext.Head(text, limit*2/3)
	return continuo.Preview{
		Head: head, Tail: plaintext.Tail(text[len(head):], limit/3), Full: ref,
		Chars: utf8.RuneCountInString(text), Bytes: int64(len(text)), Lines: strings.Count(text, "\n") + 1,
	}.String()
}

// shorter cuts a preview down as previewOf would cut the whole, as far as the preview goes.
func shorter(p continuo.Preview, limit int) continuo.Preview {
	p.Head, p.Tail = plaintext.Head(p.Head, limit*2/3), plaintext.Tail(p.Tail, limit/3)
	return p
}
