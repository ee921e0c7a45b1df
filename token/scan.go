package token

import "unicode/utf8"

// pattern names a split pattern.
type pattern uint8

const (
	patternO200k pattern = iota
	patternCL100k
)

// scanner cuts a text into the pieces that its pattern matches, one after the other. The patterns match every
// text without gaps, so a piece is known by its end.
type scanner struct {
	text    string
	pattern pattern
	classes *classTable
	steps   int // bytes read so far, repeated reads included; for tests of the growth
}

// next returns the end of the piece that starts at i, which must be below len(text). It is always above i.
func (s *scanner) next(i int) int {
	if s.pattern == patternCL100k {
		return s.nextCL100k(i)
	}
	return s.nextO200k(i)
}

// at returns the class and the length of the character at i; at the end of the text it returns zeros.
// A byte that is not UTF-8 has the class of U+FFFD.
func (s *scanner) at(i int) (class, int) {
	if i >= len(s.text) {
		return 0, 0
	}
	if b := s.text[i]; b < utf8.RuneSelf {
		return s.classes[b], 1
	}
	r, n := utf8.DecodeRuneInString(s.text[i:])
	return s.classes[r], n
}

// run returns the end of the longest run from i of characters in any of the sets.
func (s *scanner) run(i int, sets class) int {
	text, end := s.text, i
	for end < len(text) {
		if b := text[end]; b < utf8.RuneSelf {
			if s.classes[b]&sets == 0 {
				break
			}
			end++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[end:])
		if s.classes[r]&sets == 0 {
			break
		}
		end += n
	}
	s.steps += end - i
	return end
}

// numbers matches \p{N}{1,3}, given that the first is there and n bytes long.
func (s *scanner) numbers(i, n int) int {
	end := i + n
	for range 2 {
		c, n := s.at(end)
		if c&number == 0 {
			break
		}
		end += n
	}
	s.steps += end - i
	return end
}

// whitespace matches \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last line break of the run; else the run without its
// last character, which goes to the word that follows; else that character alone.
func (s *scanner) whitespace(i int) int {
	end, last, afterBreak := i, i, 0
	for {
		c, n := s.at(end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
		if c&newline != 0 {
			afterBreak = end
		}
	}
	s.steps += end - i
	switch {
	case afterBreak > 0:
		return afterBreak
	case end < len(s.text) && last > i:
		return last
	}
	return end
}

// contraction matches (?i:'s|'t|'re|'ve|'m|'ll|'d) and returns its end, or i when there is none. The long s
// (U+017F) folds to s and matches, as in the reference.
func (s *scanner) contraction(i int) int {
	t := s.text
	if i+1 >= len(t) || t[i] != '\'' {
		return i
	}
	switch first := t[i+1] | 0x20; first {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if i+2 < len(t) && t[i+2]|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if i+2 < len(t) && t[i+2]|0x20 == 'l' {
			return i + 3
		}
	default:
		if i+2 < len(t) && t[i+1:i+3] == "ſ" {
			return i + 3
		}
	}
	return i
}
