package telegram

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/plaintext"
)

// minUnits is the least that a part may have: room for a header, for the fences of a block of code, and for words.
const minUnits = 100

// part is a message of an answer, in MarkdownV2 and, for where that is refused, as plain text.
type part struct {
	Markdown string
	Plain    string
}

// split writes spans as parts of at most limit UTF-16 units, the signs of MarkdownV2 counted. The first one begins
// with the header on a line of its own; "" is none. A part ends with a paragraph where one ends in its second
// half, else with a line or else a word, else where the last word ends, and within a word where it has no other. What
// is shown in a style keeps it in each part. White space where parts meet is left out; a text of which nothing is seen
// has no parts.
func split(header string, spans []span, limit int) (parts []part) {
	limit = min(max(limit, minUnits), maxUnits)
	header = headerOf(header, limit)
	s := splitter{spans: spans, limit: limit}
	for at := s.skip(place{}); at.span < len(s.spans); {
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

// headerOf is a name as the header of an answer; "" where nothing of it is seen.
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

// plainText is what is shown of spans.
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

// place is a place in spans. Behind the last rune of a span stands the beginning of the next one.
type place struct{ span, offset int }

// skip passes over white space, but for the indentation of code.
func (s *splitter) skip(at place) place {
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

func (s *splitter) after(at place, size int) place {
	if at.offset += size; at.offset >= len(s.spans[at.span].text) {
		return place{at.span + 1, 0}
	}
	return at
}

// seam is how well a part may end at a place.
type seam uint8

const (
	seamRune seam = iota // within what people take for one character
	seamCharacter
	seamWord
	seamLine
	seamParagraph
	seams
)

// reach returns where the part ends that begins at a place and has used some of its units already.
func (s *splitter) reach(from place, used int) place {
	var last [seams]place // of each seam the last place, and what the part would have there
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
			return s.choose(last, cost)
		}
		at = s.after(at, size)
		kind := s.seam(before, r, at)
		last[kind], cost[kind] = at, used
		before = r
	}
	return place{len(s.spans), 0}
}

// seam says how well a part may end between r and what stands at next.
func (s *splitter) seam(before, r rune, next place) seam {
	switch {
	case r == '\n' && before == '\n':
		return seamParagraph
	case r == '\n':
		return seamLine
	case unicode.IsSpace(r):
		return seamWord
	}
	if next.span < len(s.spans) {
		if after, _ := utf8.DecodeRuneInString(s.spans[next.span].text[next.offset:]); joins(r, after) {
			return seamRune
		}
	}
	return seamCharacter
}

// choose takes the best seam in the part's second half, else the last one between words, else between characters.
func (s *splitter) choose(last [seams]place, cost [seams]int) place {
	for kind := seamParagraph; kind >= seamWord; kind-- {
		if cost[kind] >= s.limit/2 {
			return last[kind]
		}
	}
	best := seamWord
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

// between copies the spans between two places.
func (s *splitter) between(from, to place) (spans []span) {
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

// trim takes white space off the end, and spans that are nothing else.
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
