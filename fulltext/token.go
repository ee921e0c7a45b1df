package fulltext

import (
	"iter"
	"unicode/utf8"
)

// Token is one word of a text, or one character of a script without spaces.
type Token struct {
	Text       string // folded; at most MaxWord characters; may share the text's memory
	Start, End int    // in bytes; of the whole word, however long
	Wide       bool   // a character of a script without spaces
}

// Tokens returns the words of a text in order. A token's Text is again one token, with the same Text.
func Tokens(text string) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		s := newScanner(text)
		for s.next() {
			if !yield(Token{Text: s.string(), Start: s.start, End: s.end, Wide: s.wide}) {
				return
			}
		}
	}
}

// scanner iterates over the tokens of a text without allocating for each.
type scanner struct {
	text   string
	offset int

	start, end int
	wide       bool
	folded     []byte // valid until the next step
	same       bool   // folded is known to be the same as the text
	fold       folder
}

func newScanner(text string) scanner {
	return scanner{text: text, fold: folder{out: make([]byte, 0, MaxWord)}}
}

// next steps to the next token, if there is one. A word that folds to nothing is skipped.
func (s *scanner) next() bool {
	for s.offset < len(s.text) {
		if b := s.text[s.offset]; b < utf8.RuneSelf {
			if asciiFolds[b] == 0 {
				s.offset += max(1, colourLen(s.text[s.offset:]))
				continue
			}
			s.word()
			return true
		}
		r, size := utf8.DecodeRuneInString(s.text[s.offset:])
		switch kindOf(r) {
		case letter:
			s.start = s.offset
			s.longWord(s.offset)
		case wide:
			s.character(size)
		default:
			s.offset += size
			continue
		}
		if len(s.folded) > 0 {
			return true
		}
	}
	return false
}

// string returns the folded token; it allocates only when it differs from the text.
func (s *scanner) string() string {
	if source := s.text[s.start:s.end]; s.same || source == string(s.folded) {
		return source
	}
	return string(s.folded)
}

// word reads a word that begins in ASCII, and calls longWord for one with other characters.
func (s *scanner) word() {
	end := s.offset
	for end < len(s.text) && s.text[end] < utf8.RuneSelf && asciiFolds[s.text[end]] != 0 {
		end++
	}
	s.start, s.end, s.wide, s.folded = s.offset, end, false, s.fold.out[:0]
	other := byte(0)
	for _, b := range []byte(s.text[s.start:min(end, s.start+MaxWord)]) {
		other |= b ^ asciiFolds[b]
		s.folded = append(s.folded, asciiFolds[b])
	}
	s.fold.out, s.offset, s.same = s.folded, end, other == 0 && end-s.start <= MaxWord
	if end < len(s.text) && s.text[end] >= utf8.RuneSelf {
		s.longWord(end)
	}
}

// longWord reads a word from s.start, which is ASCII up to an offset.
func (s *scanner) longWord(from int) {
	s.fold.begin()
	for i := s.start; i < min(from, s.start+MaxWord); i++ {
		s.fold.put(rune(asciiFolds[s.text[i]]))
	}
	s.offset, s.end, s.wide, s.same = from, from, false, false
	for s.offset < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[s.offset:])
		switch kindOf(r) {
		case letter, mark:
			s.fold.add(s.text[s.offset : s.offset+size])
			s.end = s.offset + size
		case joiner:
		default:
			s.folded = s.fold.word()
			return
		}
		s.offset += size
	}
	s.folded = s.fold.word()
}

// character reads a wide character of so many bytes, and the marks on it.
func (s *scanner) character(size int) {
	s.start, s.end, s.wide, s.same = s.offset, s.offset+size, true, false
	s.fold.begin()
	s.fold.addWide(s.text[s.offset:s.end])
	for s.offset = s.end; s.offset < len(s.text); {
		r, size := utf8.DecodeRuneInString(s.text[s.offset:])
		switch kindOf(r) {
		case mark:
			s.fold.add(s.text[s.offset : s.offset+size])
			s.end = s.offset + size
		case joiner:
		default:
			s.folded = s.fold.word()
			return
		}
		s.offset += size
	}
	s.folded = s.fold.word()
}

// colourLen returns the length of the terminal control sequence that a text begins with, such as ESC [ 31 m,
// or 0. Its letters belong to no word.
func colourLen(text string) int {
	if text[0] != 0x1b || len(text) < 2 || text[1] != '[' {
		return 0
	}
	for i := 2; i < len(text); i++ {
		switch b := text[i]; {
		case '0' <= b && b <= '?':
		case '@' <= b && b <= '~':
			return i + 1
		default:
			return 0
		}
	}
	return 0
}
