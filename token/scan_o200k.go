package token

// nextO200k matches the pattern of o200k_base (openai/tiktoken, tiktoken_ext/openai_public.py), whose
// alternatives are tried in this order:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+|\s+(?!\S)|\s+
func (s *scanner) nextO200k(i int) int {
	if end := s.plainWordO200k(i); end > 0 {
		return end
	}
	c, n := s.at(i)
	switch {
	case c&letter != 0:
		end, _ := s.word(i)
		return s.contraction(end)
	case c&number != 0:
		return s.numbers(i, n)
	case c&newline == 0:
		if end := s.prefixedWord(i, n, c); end > i {
			return s.contraction(end)
		}
	}
	after := i // of the optional space
	if s.text[i] == ' ' {
		after++
	}
	if end := s.run(after, symbol); end > after {
		return s.run(end, newline|slash)
	}
	return s.whitespace(i)
}

// prefixedWord matches the two word alternatives, contraction aside, after a prefix character of n bytes that
// is no letter. A mark may be that character or begin the word itself: the first alternative is tried with it
// as prefix, then, since it always matches a word that begins with a mark, with it as the word. It returns i
// when there is no word.
func (s *scanner) prefixedWord(i, n int, c class) int {
	end, small := s.word(i + n)
	if !small && c&bothRuns != 0 {
		end, _ = s.word(i)
		return end
	}
	if end == i+n {
		return i
	}
	return end
}

// word matches the first word alternative from i, without prefix and contraction, and reports true; where
// only the second matches, it returns that end and false; where none does, i and false.
//
// A run of capitals followed by a small letter continues to the end of the small run. Otherwise the first
// alternative gives back what it took until a character is left that counts as small too, so it ends after
// the last such character of the run of capitals. Without any, the run holds only real capitals, no small
// letter follows, and the second alternative takes all of it.
func (s *scanner) word(i int) (end int, small bool) {
	end, afterBoth := i, i
	var c class
	for {
		var n int
		c, n = s.at(end)
		if c&upperRun == 0 {
			break
		}
		end += n
		if c&lowerRun != 0 {
			afterBoth = end
		}
	}
	s.steps += end - i
	switch {
	case c&lowerRun != 0:
		return s.run(end, lowerRun), true
	case afterBoth > i:
		return afterBoth, true
	}
	return end, false
}
