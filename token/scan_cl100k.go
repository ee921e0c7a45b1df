package token

// nextCL100k matches the pattern of cl100k_base (openai/tiktoken, tiktoken_ext/openai_public.py), whose
// alternatives are tried in this order:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+|\s+(?!\S)|\s+
func (s *scanner) nextCL100k(i int) int {
	if end := s.plainWordCL100k(i); end > 0 {
		return end
	}
	if end := s.contraction(i); end > i {
		return end
	}
	c, n := s.at(i)
	switch {
	case c&letter != 0:
		return s.run(i+n, letter)
	case c&number != 0:
		return s.numbers(i, n)
	case c&newline == 0:
		if end := s.run(i+n, letter); end > i+n {
			return end
		}
	}
	after := i // of the optional space
	if s.text[i] == ' ' {
		after++
	}
	if end := s.run(after, symbol); end > after {
		return s.run(end, newline)
	}
	return s.whitespace(i)
}
