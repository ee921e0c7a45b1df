package telegram

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/plaintext"
)

// minUnits is the smallest limit of a part: it leaves room for a header, for the fences of a block of code, and for text.
const minUnits = 100

// part is one message of an answer, in MarkdownV2 and, for when that is refused, as plain text.
type part struct {
	Markdown string
	Plain    string
}

// split writes spans as parts of at most limit UTF-16 units, the marks of MarkdownV2 included. The first part begins
// with the header on a line of its own; "" is none. A part ends at a paragraph that ends in its second half, else at a
// line, else at a word there, else at its last word, and within a word if there is no other way. A style continues in
// each part. White space between parts is dropped; a text with nothing visible has no parts.
func split(header string, spans []span, limit int) (parts []part) {
	limit = min(max(limit, minUnits), maxUnits)
	header = headerOf(header, limit)
	s := splitter{spans: spans, limit: limit}
	for at := s.skip(splitPoint{}); at.span < len(s.spans); {
		var used int
		if header != "" {
			used = countUnits(headline(header)) + 1
		}
		end := s.reach(at, used)
		if spans := trim(s.between(at, end)); !plaintext.IsBlank(plainText(spans)) {
			parts = append(parts, write(header, spans))
			header = ""
		}
		at = s.skip(end)
	}
	return parts
}

// headerOf formats a name as the header of an answer; "" if nothing of it is visible.
func headerOf(name string, limit int) string {
	if name = oneLine(name, limit/8); plaintext.IsBlank(name) {
		return ""
	}
	return name
}

func write(header string, spans []span) part {
	if header == "" {
		return part{markdownV2(spans), plain(spans)}
	}
	return part{headline(header) + "\n" + markdownV2(spans), header + "\n" + plain(spans)}
}

// plainText is the visible text of spans.
func plainText(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.text)
	}
	return b.String()
}

// splitter finds where the parts of spans end.
type splitter struct {
	spans []span
	limit int
}

// splitPoint is a position in spans. The position after a span's last rune is the beginning of the next span.
type splitPoint struct{ span, offset int }

// skip skips white space, except for the indentation of code.
func (s *splitter) skip(at splitPoint) splitPoint {
	for at.span < len(s.spans) {
		current := s.spans[at.span]
		r, size := utf8.DecodeRuneInString(current.text[at.offset:])
		if size > 0 && (r != '\n' && current.kind != spanText || !unicode.IsSpace(r)) {
			return at
		}
		at = s.after(at, size)
	}
	return at
}

func (s *splitter) after(at splitPoint, size int) splitPoint {
	if at.offset += size; at.offset >= len(s.spans[at.span].text) {
		return splitPoint{at.span + 1, 0}
	}
	return at
}

// seam ranks how well a part may end at a position.
type seam uint8

const (
	seamRune seam = iota // within what people see as one character
	seamCharacter
	seamSpace
	seamLine
	seamParagraph
	seams
)

// reach returns the end of the part that begins at a position and has used some of its units already.
func (s *splitter) reach(from splitPoint, used int) splitPoint {
	var last [seams]splitPoint // for each seam its last position, and the size of the part that would end there
	var cost [seams]int
	var before rune
	var first, ofLine int
	opened := -1
	for at := from; at.span < len(s.spans); {
		current := s.spans[at.span]
		if opened != at.span {
			opened = at.span
			first, ofLine = current.cost()
			used += first
		}
		r, size := utf8.DecodeRuneInString(current.text[at.offset:])
		used += units(r)
		if isReserved(r, current.kind) {
			used++
		}
		if r == '\n' {
			used += ofLine
		}
		if used > s.limit {
			return s.best(last, cost)
		}
		at = s.after(at, size)
		kind := s.seam(before, r, at)
		last[kind], cost[kind] = at, used
		before = r
	}
	return splitPoint{len(s.spans), 0}
}

// seam ranks a break between r and the rune at next.
func (s *splitter) seam(before, r rune, next splitPoint) seam {
	switch {
	case r == '\n' && before == '\n':
		return seamParagraph
	case r == '\n':
		return seamLine
	case unicode.IsSpace(r):
		return seamSpace
	}
	if next.span < len(s.spans) {
		if after, _ := utf8.DecodeRuneInString(s.spans[next.span].text[next.offset:]); joins(r, after) {
			return seamRune
		}
	}
	return seamCharacter
}

// best takes the best seam in the part's second half, else the last one between words, else between characters.
func (s *splitter) best(last [seams]splitPoint, cost [seams]int) splitPoint {
	for kind := seamParagraph; kind >= seamSpace; kind-- {
		if cost[kind] >= s.limit/2 {
			return last[kind]
		}
	}
	best := seamSpace
	for kind := seamLine; kind <= seamParagraph; kind++ {
		if cost[kind] > cost[best] {
			best = kind
		}
	}
	for best > seamRune && cost[best] == 0 {
		best--
	}
	return last[best]
}

// between copies the spans between two positions.
func (s *splitter) between(from, to splitPoint) (spans []span) {
	for i := from.span; i < len(s.spans) && i <= to.span; i++ {
		piece := s.spans[i]
		if i == to.span {
			piece.text = piece.text[:to.offset]
		}
		if i == from.span {
			piece.text = piece.text[from.offset:]
		}
		if piece.text != "" {
			spans = append(spans, piece)
		}
	}
	return spans
}

// trim removes white space at the end, and spans of only white space.
func trim(spans []span) []span {
	for len(spans) > 0 {
		last := &spans[len(spans)-1]
		if last.text = strings.TrimRightFunc(last.text, unicode.IsSpace); last.text != "" {
			return spans
		}
		spans = spans[:len(spans)-1]
	}
	return spans
}
