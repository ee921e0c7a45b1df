package token

import (
	"math/bits"
	"unicode/utf8"
)

// Most pieces are words of small ASCII letters with a space in front. They are read eight bytes at a time: how long a
// word is cannot be predicted, and each byte would cost a branch.

// plainWordO200k returns the end of the piece that starts at i, if it is such a word, or one that begins with one
// capital; 0 otherwise, and where what follows may belong to the word.
func (s *scanner) plainWordO200k(i int) int {
	text, at := s.text, i
	if text[at] == ' ' {
		at++
	}
	if at < len(text) && 'A' <= text[at] && text[at] <= 'Z' {
		at++
	}
	end := at + asciiLetters(text[at:], 0)
	if end == at || end < len(text) && (text[end] >= utf8.RuneSelf || text[end] == '\'') {
		return 0
	}
	s.steps += end - i
	return end
}

// plainWordCL100k is the same for words of letters of either case.
func (s *scanner) plainWordCL100k(i int) int {
	text, at := s.text, i
	if text[at] == ' ' {
		at++
	}
	end := at + asciiLetters(text[at:], 0x20)
	if end == at || end < len(text) && text[end] >= utf8.RuneSelf {
		return 0
	}
	s.steps += end - i
	return end
}

// asciiLetters returns how many small ASCII letters a text begins with; letters of either case with a fold of 0x20.
func asciiLetters(text string, fold byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(text)-n >= 8; n += 8 {
		x := load64(text, n) | uint64(fold)*ones
		low := x &^ highs
		// The high bit of a byte is set in the first sum from 'a' on, and in the second one beyond 'z'.
		letters := (low + (0x80-'a')*ones) &^ (low + (0x80-'z'-1)*ones) &^ x & highs
		if letters != highs {
			return n + bits.TrailingZeros64(^letters&highs)/8
		}
	}
	for n < len(text) && 'a' <= text[n]|fold && text[n]|fold <= 'z' {
		n++
	}
	return n
}
