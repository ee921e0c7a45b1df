package search

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall/search"
)

// match is an entry that a query matches.
type match struct {
	entry  *continuo.Entry
	fields []field
	hits   []hit // at least one, at most maxHits, in order, each on a separate line
	more   bool  // more lines match
	beside bool  // none matches: it is beside a match
}

// maxHits bounds how many matching lines of one entry are shown.
const maxHits = 5

// field is one text of an entry. Its label, which may be empty, precedes its first line.
type field struct{ label, text string }

// hit is a line with a match, or with the beginning of a match over several lines. Offsets are in bytes.
type hit struct {
	field      int
	begin, end int // of the line, without its end
	at         int // of the match, from the line's begin
}

// match matches an entry with the query's expression; nil when it does not match. Its only error is that of ctx.
func (q *query) match(ctx context.Context, candidate *index.Candidate) (*match, error) {
	texts := candidate.Texts()
	if !q.takes(candidate.Entry.Role) || len(texts) == 0 {
		return nil, nil
	}
	fields, _ := fieldsOf(&candidate.Entry, texts)
	m := &match{entry: &candidate.Entry, fields: fields}
	hits, err := hitsOf(ctx, q.expression, fields)
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	m.take(hits)
	return m, nil
}

// found is a match of words. An entry without any of them is shown from its beginning.
func (q *query) found(found *search.Found) *match {
	texts := found.Texts()
	fields, origins := fieldsOf(&found.Entry, texts)
	m := &match{entry: &found.Entry, fields: fields}
	if len(found.Match.Hits) > 0 {
		m.take(m.linesOf(firstOfEachForm(found.Match.Hits, texts), origins))
		return m
	}
	m.beside = true
	begin, end := lineAround(fields[0].text, len(fields[0].text)-len(strings.TrimLeft(fields[0].text, " \t\r\n")))
	m.hits = []hit{{begin: begin, end: end}}
	return m
}

// take keeps the first lines with hits.
func (m *match) take(hits []hit) {
	for _, hit := range hits {
		switch {
		case slices.ContainsFunc(m.hits, hit.sameLine):
		case len(m.hits) == maxHits:
			m.more = true
		default:
			m.hits = append(m.hits, hit)
		}
	}
	slices.SortFunc(m.hits, inOrder)
}

func inOrder(a, b hit) int { return cmp.Or(a.field-b.field, a.begin-b.begin) }

func (h hit) sameLine(other hit) bool { return h.field == other.field && h.begin == other.begin }

// origin is the position of a text of fulltext.TextsOf in the fields.
type origin struct{ field, offset int }

// fieldsOf returns an entry's texts as they are shown, with labels, and a call's arguments below its name.
// The texts are those of fulltext.TextsOf.
func fieldsOf(entry *continuo.Entry, texts []string) (fields []field, origins []origin) {
	add := func(label string) {
		origins = append(origins, origin{len(fields), 0})
		fields = append(fields, field{label, texts[0]})
		texts = texts[1:]
	}
	behind := 0 // texts after the content
	for _, call := range entry.ToolCalls {
		behind += min(len(call.Name), 1) + min(len(call.Arguments), 1)
	}
	if entry.Error != nil {
		behind += min(len(entry.Error.Message), 1)
	}
	if entry.Outcome != "" {
		add("outcome: ")
	}
	if len(texts) > behind {
		add("")
	}
	for _, call := range entry.ToolCalls {
		named := call.Name != ""
		if named {
			add("call: ")
		}
		switch last := len(fields) - 1; {
		case call.Arguments == "":
		case named:
			origins = append(origins, origin{last, len(fields[last].text) + 1})
			fields[last].text += "\n" + texts[0]
			texts = texts[1:]
		default:
			add("call: ")
		}
	}
	if len(texts) > 0 {
		add("error: ")
	}
	return fields, origins
}

// firstOfEachForm moves the first hit of each word, in each of its forms, before all others, so that each is
// shown if there is room.
func firstOfEachForm(hits []fulltext.Hit, texts []string) []fulltext.Hit {
	var first, others []fulltext.Hit
	seen := map[string]bool{}
	for _, hit := range hits {
		form := ""
		for token := range fulltext.Tokens(texts[hit.Field][hit.Start:hit.End]) {
			form += token.Text + " "
		}
		if seen[form] {
			others = append(others, hit)
		} else {
			first, seen[form] = append(first, hit), true
		}
	}
	return append(first, others...)
}

// linesOf returns the lines on which hits in texts begin.
func (m *match) linesOf(found []fulltext.Hit, origins []origin) []hit {
	lines := make([]hit, len(found))
	for i, f := range found {
		at := origins[f.Field]
		begin, end := lineAround(m.fields[at.field].text, at.offset+f.Start)
		lines[i] = hit{field: at.field, begin: begin, end: end, at: at.offset + f.Start - begin}
	}
	return lines
}

// hitsOf finds the lines with matches of a term, at most one more than are shown.
func hitsOf(ctx context.Context, term *regexp.Regexp, fields []field) ([]hit, error) {
	var hits []hit
	for number, field := range fields {
		lines := scan{text: field.text}
		for len(hits) <= maxHits {
			begin, end, at, err := lines.next(ctx, term)
			if err != nil {
				return nil, err
			}
			if at < 0 {
				break
			}
			hits = append(hits, hit{field: number, begin: begin, end: end, at: at - begin})
		}
	}
	return hits, nil
}

// maxPiece is the largest part of a text that is matched at once, in bytes, so that a search can stop at its
// time limit. Pieces share at most seam bytes.
const (
	maxPiece = 16 << 10
	seam     = 1 << 10
)

// scan iterates over the lines of a text that an expression matches. Each step begins at a line, or in a long
// line, at a piece.
type scan struct {
	text   string
	offset int
}

// next returns the bounds of the next line with a match and the offset of the match, -1 when there is none.
func (s *scan) next(ctx context.Context, term *regexp.Regexp) (begin, end, at int, err error) {
	for s.offset < len(s.text) {
		if err := ctx.Err(); err != nil {
			return 0, 0, -1, err
		}
		rest := s.text[s.offset:]
		piece := rest[:pieceEnd(rest)]
		if found := term.FindStringIndex(piece); found != nil {
			at = s.offset + found[0]
			begin, end = lineAround(s.text, at)
			s.offset = end + 1
			return begin, end, at, nil
		}
		if len(piece) == len(rest) {
			break
		}
		s.offset += seamBegin(piece)
	}
	s.offset = len(s.text)
	return 0, 0, -1, nil
}

// pieceEnd returns where to end a piece at the beginning of a text: after a line if a line ends in its second
// half.
func pieceEnd(text string) int {
	if len(text) <= maxPiece {
		return len(text)
	}
	if end := strings.LastIndexByte(text[maxPiece/2:maxPiece], '\n'); end >= 0 {
		return maxPiece/2 + end + 1
	}
	return runeBegin(text, maxPiece)
}

// seamBegin returns where the next piece begins: at the last line of this one, if that is short enough.
func seamBegin(piece string) int {
	begin := len(piece) - seam
	if end := strings.IndexByte(piece[begin:len(piece)-1], '\n'); end >= 0 {
		return begin + end + 1
	}
	return runeBegin(piece, begin)
}

// lineAround returns the bounds of the line that contains an offset, without its end.
func lineAround(text string, offset int) (begin, end int) {
	begin = strings.LastIndexByte(text[:offset], '\n') + 1
	if end = strings.IndexByte(text[offset:], '\n'); end < 0 {
		return begin, len(text)
	}
	return begin, offset + end
}

// runeBegin returns the beginning of the character that contains an offset.
func runeBegin(text string, offset int) int {
	for offset > 0 && offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset--
	}
	return offset
}
