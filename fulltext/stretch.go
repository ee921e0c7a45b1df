package fulltext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// stretch is a part of a text that a snippet shows.
type stretch struct {
	text       string
	field      int
	begin, end int // in bytes
}

// joins reports whether both fit into one stretch of at most so many characters.
func (s stretch) joins(other stretch, limit int) bool {
	begin, end := min(s.begin, other.begin), max(s.end, other.end)
	return s.field == other.field && forward(s.text, begin, end, limit) == end
}

func (s stretch) hasBefore() bool { return strings.TrimSpace(s.text[:s.begin]) != "" }
func (s stretch) hasAfter() bool  { return strings.TrimSpace(s.text[s.end:]) != "" }

// grow extends a stretch to at most so many characters, or cuts it.
func (s *stretch) grow(limit int) {
	size := width(s.text[s.begin:s.end], limit)
	if end := forward(s.text, s.begin, s.end, limit); end < s.end {
		s.end = clusterBefore(s.text, s.begin, end)
		return
	}
	begin, end := s.begin, s.end
	left := backward(s.text, begin, (limit-size)/2)
	right := forward(s.text, end, len(s.text), limit-size-width(s.text[left:begin], limit))
	left = backward(s.text, begin, limit-size-width(s.text[end:right], limit))
	s.begin = borderAfter(s.text, left, begin)
	s.end = borderBefore(s.text, right, end)
}

// width counts the characters of a text as a snippet shows them, white space as one; at most one more than the
// limit.
func width(text string, limit int) int {
	n, blank := 0, false
	for _, r := range text {
		space := unicode.IsSpace(r)
		if !space || !blank {
			n++
		}
		if blank = space; n > limit {
			break
		}
	}
	return n
}

// forward returns the offset up to so many characters after another one, not beyond the limit.
func forward(text string, from, limit, chars int) int {
	blank := false
	for i, r := range text[from:limit] {
		space := unicode.IsSpace(r)
		if !space || !blank {
			if chars <= 0 {
				return from + i
			}
			chars--
		}
		blank = space
	}
	return limit
}

// backward returns the offset up to so many characters before another one.
func backward(text string, from, chars int) int {
	blank := false
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		space := unicode.IsSpace(r)
		if !space || !blank {
			if chars <= 0 {
				break
			}
			chars--
		}
		blank = space
		from -= size
	}
	return from
}

// reach is by how many characters a stretch is shortened at most to end between words.
const reach = 24

// borderAfter returns the first word boundary at or after an offset and not beyond the limit; if there is
// none near, a character boundary.
func borderAfter(text string, from, limit int) int {
	offset := from
	for range reach {
		if offset >= limit || isBorder(text, offset) {
			return min(offset, limit)
		}
		_, size := utf8.DecodeRuneInString(text[offset:])
		offset += size
	}
	for from < limit && !partsClusters(text, from) {
		_, size := utf8.DecodeRuneInString(text[from:])
		from += size
	}
	return from
}

// borderBefore is borderAfter in the other direction.
func borderBefore(text string, from, limit int) int {
	offset := from
	for range reach {
		if offset <= limit || isBorder(text, offset) {
			return max(offset, limit)
		}
		_, size := utf8.DecodeLastRuneInString(text[:offset])
		offset -= size
	}
	for from > limit && !partsClusters(text, from) {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	return from
}

// clusterBefore returns the last character boundary at or before an offset, and after the limit if there is
// one.
func clusterBefore(text string, limit, from int) int {
	for offset := from; offset > limit; {
		if partsClusters(text, offset) {
			return offset
		}
		_, size := utf8.DecodeLastRuneInString(text[:offset])
		offset -= size
	}
	return from
}

// isBorder reports whether an offset is not within a word.
func isBorder(text string, offset int) bool {
	if offset == 0 || offset == len(text) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:offset])
	after, _ := utf8.DecodeRuneInString(text[offset:])
	if !partClusters(before, after) {
		return false
	}
	inWord := func(r rune) bool { k := kindOf(r); return k == letter || k == mark || k == joiner }
	return !inWord(before) || !inWord(after)
}

func partsClusters(text string, offset int) bool {
	if offset == 0 || offset == len(text) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:offset])
	after, _ := utf8.DecodeRuneInString(text[offset:])
	return partClusters(before, after)
}

// partClusters reports whether there is a boundary of a user-perceived character between two characters: not
// within marks, joined emoji, flags, or decomposed Korean syllables. If in doubt, it returns false.
func partClusters(before, after rune) bool {
	const zeroWidthJoiner = '\u200D'
	switch {
	case before == zeroWidthJoiner, kindOf(after) == mark, kindOf(after) == joiner:
		return false
	case isFlagLetter(before) && isFlagLetter(after):
		return false
	case 0x1F3FB <= after && after <= 0x1F3FF: // skin tones
		return false
	case 0x1160 <= after && after <= 0x11FF: // vowels and finals of Korean
		return false
	}
	return before != '\r' || after != '\n'
}

func isFlagLetter(r rune) bool { return 0x1F1E6 <= r && r <= 0x1F1FF }
