package token

// countPair returns the number of tokens of a piece of two bytes.
func (v *vocab) countPair(a, b byte) int {
	if v.pair(a, b) != noRank {
		return 1
	}
	return 2
}

// countThree is countShort for three bytes that are no token.
func (v *vocab) countThree(a, b, c byte) int {
	if v.pair(a, b)&v.pair(b, c) == noRank {
		return 3
	}
	return 2
}

// countFour is countShort for four bytes that are no token. Once a pair of them is joined, one more join is the last: the
// four together are no token.
func (v *vocab) countFour(text string, i int) int {
	t := text[i : i+4]
	ab, bc, cd := v.pair(t[0], t[1]), v.pair(t[1], t[2]), v.pair(t[2], t[3])
	joins := false
	switch lowest := min(ab, bc, cd); lowest {
	case noRank:
		return 4
	case ab:
		joins = cd != noRank || v.hasThree(text, i)
	case bc:
		joins = v.hasThree(text, i) || v.hasThree(text, i+1)
	default:
		joins = ab != noRank || v.hasThree(text, i+1)
	}
	if joins {
		return 2
	}
	return 3
}

// hasThree reports whether text[i:i+3] is a token.
func (v *vocab) hasThree(text string, i int) bool {
	t := text[i : i+3]
	if at := triple(t[0], t[1], t[2]); at < tripleBits {
		return v.triples[at/64]>>(at%64)&1 != 0
	}
	key := shortKey(text, i, i+3)
	return v.findShort(key, key*hashFactor) != noRank
}

// tripleBits is the number of strings of three ASCII characters: a bit for each takes 256 kB, of which a text touches the
// lines of the pairs that its pieces begin with.
const tripleBits = 1 << 21

// triple numbers the strings of three bytes; those of ASCII characters are below tripleBits.
func triple(a, b, c byte) uint {
	if (a|b|c)&0x80 != 0 {
		return tripleBits
	}
	return uint(a)<<14 | uint(b)<<7 | uint(c)
}

// shortMerge merges a piece of at most shortToken bytes that is no token. The piece is in one word, so that the parts'
// keys need no reading of the text, and the parts stay side by side.
type shortMerge struct {
	word   uint64                 // the bytes, the first one lowest
	starts [shortToken + 1]uint8  // of the parts; then the length of the piece
	ranks  [shortToken + 1]uint32 // of each part joined with the next one
}

// countShort returns the number of tokens of text[i:end], which has 1 to shortToken bytes and is no token.
func (v *vocab) countShort(text string, i, end int) int {
	parts := end - i
	s := shortMerge{word: shortKey(text, i, end)}
	for p := 1; p < parts; p++ {
		s.starts[p] = uint8(p)
		s.ranks[p-1] = v.pair(text[i+p-1], text[i+p])
	}
	s.starts[parts] = uint8(parts)
	for parts > 2 {
		lowest := 0
		for p := 1; p < parts-1; p++ {
			if s.ranks[p] < s.ranks[lowest] {
				lowest = p
			}
		}
		if s.ranks[lowest] == noRank {
			return parts
		}
		parts--
		for p := lowest + 1; p < parts; p++ {
			s.starts[p], s.ranks[p] = s.starts[p+1], s.ranks[p+1]
		}
		s.starts[parts] = s.starts[parts+1]
		if lowest+1 < parts {
			s.ranks[lowest] = v.joined(&s, lowest)
		}
		if lowest > 0 {
			s.ranks[lowest-1] = v.joined(&s, lowest-1)
		}
	}
	if parts == 2 && s.ranks[0] != noRank {
		return 1
	}
	return parts
}

// joined returns the rank of a part joined with the next one, or noRank.
func (v *vocab) joined(s *shortMerge, p int) uint32 {
	from, n := s.starts[p], uint(s.starts[p+2]-s.starts[p])
	key := s.word>>(8*from)&(1<<(8*n)-1) | uint64(n)<<56
	return v.findShort(key, key*hashFactor)
}
