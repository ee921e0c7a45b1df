package window

import (
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/plaintext"
)

// previewOf shows the head and the tail of a text of so many characters, two thirds and one third of about limit
// characters, cut between lines if possible, and says where the whole text is.
func previewOf(text string, chars, limit int, ref string) string {
	head := plaintext.Head(text, limit*2/3)
	return continuo.Preview{
		Head: head, Tail: plaintext.Tail(text[len(head):], limit/3), Full: ref,
		Chars: chars, Bytes: int64(len(text)), Lines: strings.Count(text, "\n") + 1,
	}.String()
}

// shorter shortens a preview as previewOf would shorten the whole text, as far as the preview reaches.
func shorter(p continuo.Preview, limit int) continuo.Preview {
	p.Head, p.Tail = plaintext.Head(p.Head, limit*2/3), plaintext.Tail(p.Tail, limit/3)
	return p
}
