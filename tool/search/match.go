package search

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// match is an entry in which every term of a query occurs.
type match struct {
	entry  *continuo.Entry
	fields []field
	hits   []hit // at least one, at most maxHits, in order, each on a line of its own
	more   bool  // more lines match
}

// maxHits is how many lines of one entry are shown as matching.
const maxHits = 5

// field is one text of an entry. Its label stands before its first line; it may be empty.
type field struct{ label, text string }

// hit is a line with a match, or where a match over several lines begins. Offsets are in bytes.
type hit struct {
	field      int
	begin, end int // of the line, without its end
	at         int // of the match, from the line's begin
}

// match looks for the query in an entry; nil when it does not match. An error is that of ctx.
func (q *query) match(ctx context.Context, entry *continuo.Entry) (*match, error) {
	if !q.looksAt(entry) {
		return nil, nil
	}
	fields := fieldsOf(entry)
	var first, others []hit
	for _, term := range q.terms {
		hits, err := hitsOf(ctx, term, fields)
		if err != nil || len(hits) == 0 {
			return nil, err
		}
		first, others = append(first, hits[0]), append(others, hits[1:]...)
	}
	slices.SortStableFunc(others, inOrder)
	m := &match{entry: entry, fields: fields}
	for _, hit := range append(first, others...) { // so that each term is shown, as far as there is room
		switch {
		case slices.ContainsFunc(m.hits, hit.sameLine):
		case len(m.hits) == maxHits:
			m.more = true
		default:
			m.hits = append(m.hits, hit)
		}
	}
	slices.SortFunc(m.hits, inOrder)
	return m, nil
}

// looksAt reports whether the query is about such entries.
func (q *query) looksAt(entry *continuo.Entry) bool {
	return !entry.Hidden && (q.role == "" || entry.Role == q.role)
}

func inOrder(a, b hit) int { return cmp.Or(a.field-b.field, a.begin-b.begin) }

func (h hit) sameLine(other hit) bool { return h.field == other.field && h.begin == other.begin }

// fieldsOf are the texts of an entry that a search looks at.
func fieldsOf(entry *continuo.Entry) []field {
	fields := []field{{"outcome: ", entry.Outcome}, {"", entry.Content.String()}}
	for _, call := range entry.ToolCalls {
		fields = append(fields, field{"call: ", call.Name + "\n" + readable(call.Arguments)})
	}
	return fields
}

var escapes = regexp.MustCompile(`\\\\|(?:\\u[0-9a-fA-F]{4})+`)

// readable replaces the escapes of letters in JSON, which some models write for every letter beyond ASCII.
func readable(arguments string) string {
	if !strings.Contains(arguments, `\u`) {
		return arguments
	}
	return escapes.ReplaceAllStringFunc(arguments, func(escaped string) string {
		var text string
		if json.Unmarshal([]byte(`"`+escaped+`"`), &text) != nil || text[0] < utf8.RuneSelf {
			return escaped
		}
		return text
	})
}

// hitsOf finds the lines on which a term matches, at most one more than are shown.
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

// maxPiece is the most of a text that is matched at once, in bytes, so that a search ends when its time is
// up. Pieces share at most seam bytes.
const (
	maxPiece = 16 << 10
	seam     = 1 << 10
)

// scan goes through the lines of a text on which an expression matches. Each step is at a line's begin,
// or in a longer line, at a piece's.
type scan struct {
	text  string
	place int
}

// next returns the bounds of the next line with a match and where the match begins, -1 when there is none.
func (s *scan) next(ctx context.Context, term *regexp.Regexp) (begin, end, at int, err error) {
	for s.place < len(s.text) {
		if err := ctx.Err(); err != nil {
			return 0, 0, -1, err
		}
		rest := s.text[s.place:]
		piece := rest[:pieceEnd(rest)]
		if found := term.FindStringIndex(piece); found != nil {
			at = s.place + found[0]
			begin, end = lineAround(s.text, at)
			s.place = end + 1
			return begin, end, at, nil
		}
		if len(piece) == len(rest) {
			break
		}
		s.place += seamBegin(piece)
	}
	s.place = len(s.text)
	return 0, 0, -1, nil
}

// pieceEnd is where to end a piece at the begin of a text: after a line if there is one in its second half.
func pieceEnd(text string) int {
	if len(text) <= maxPiece {
		return len(text)
	}
	if end := strings.LastIndexByte(text[maxPiece/2:maxPiece], '\n'); end >= 0 {
		return maxPiece/2 + end + 1
	}
	return runeBegin(text, maxPiece)
}

// seamBegin is where the next piece begins: with the last line of this one, if that is short enough.
func seamBegin(piece string) int {
	begin := len(piece) - seam
	if end := strings.IndexByte(piece[begin:len(piece)-1], '\n'); end >= 0 {
		return begin + end + 1
	}
	return runeBegin(piece, begin)
}

// lineAround returns the bounds of the line that a place is in, without its end.
func lineAround(text string, place int) (begin, end int) {
	begin = strings.LastIndexByte(text[:place], '\n') + 1
	if end = strings.IndexByte(text[place:], '\n'); end < 0 {
		return begin, len(text)
	}
	return begin, place + end
}

// runeBegin returns the begin of the character that a place is in.
func runeBegin(text string, place int) int {
	for place > 0 && place < len(text) && !utf8.RuneStart(text[place]) {
		place--
	}
	return place
}
