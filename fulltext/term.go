package fulltext

import (
	"hash/maphash"
	"slices"
)

// Terms returns the index terms of an entry's texts: each word, and for a run of wide characters each pair of
// neighbours and the last one alone, so that one character is found as the prefix of a pair and more as all
// of their pairs. A word whose stem is another word has also its stem, with a mark: see [StemTerm]. They are distinct, sorted by bytes, valid UTF-8 of letters, digits and marks only, at most
// 256 bytes each; they may share the memory of the texts.
//
// They are limited to MaxTerms and MaxTermBytes: the first in the order of the texts are kept. No text of up
// to 60 kB exceeds that.
func Terms(texts ...string) []string {
	c := collector{terms: make([]string, 0, usualTerms(texts))}
	for _, text := range texts {
		c.text(text)
	}
	slices.Sort(c.terms)
	return c.terms
}

// usualTerms estimates the number of terms in texts.
func usualTerms(texts []string) int {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	return min(2+size/6, 20+size/24, MaxTerms)
}

type collector struct {
	set   set
	terms []string
	bytes int
	full  bool
	pair  []byte

	stems  stemmer
	marked []byte
}

// text adds the terms of one text.
func (c *collector) text(text string) {
	s := newScanner(text)
	begin := -1 // of the preceding wide character, if there is one
	for !c.full && s.next() {
		if begin >= 0 && s.wide {
			c.pair = append(c.pair, s.folded...)
			c.add(c.pair, text[begin:s.end])
		} else if begin >= 0 {
			c.add(c.pair, "")
		}
		begin = -1
		if s.wide {
			begin, c.pair = s.start, append(c.pair[:0], s.folded...)
		} else {
			c.add(s.folded, text[s.start:s.end])
			c.stem(s.folded)
		}
	}
	if begin >= 0 {
		c.add(c.pair, "")
	}
}

// stem adds the marked stem of a word that differs from its stem.
func (c *collector) stem(word []byte) {
	if stem, other := c.stems.of(word); other {
		c.add(append(append(c.marked[:0], stem...), stemMark...), "")
	}
}

// add adds a term; it shares the memory of the text if the text contains it unchanged.
func (c *collector) add(term []byte, source string) {
	at, known := c.set.find(c.terms, term)
	if known || c.full {
		return
	}
	if len(c.terms) == MaxTerms || c.bytes+len(term) > MaxTermBytes {
		c.full = true
		return
	}
	if source != string(term) {
		source = string(term)
	}
	c.terms = append(c.terms, source)
	c.bytes += len(term)
	c.set.put(at, len(c.terms))
}

// set finds terms in a list. Unlike a map it has no pointers, so it is cheap to fill and to discard.
type set struct {
	seed  maphash.Seed
	slots []slot // a power of two of them, at least half of them free
	hash  uint32 // of the last look-up
	used  int
}

// slot holds the number of a term in the list, from 1; 0 when it is free.
type slot struct{ number, hash uint32 }

// find returns the slot of a term, or the free slot for it.
func (s *set) find(terms []string, term []byte) (at int, known bool) {
	if 2*s.used >= len(s.slots) {
		s.grow()
	}
	s.hash = uint32(maphash.Bytes(s.seed, term))
	for at = s.home(s.hash); s.slots[at].number != 0; at = s.next(at) {
		if s.slots[at].hash == s.hash && terms[s.slots[at].number-1] == string(term) {
			return at, true
		}
	}
	return at, false
}

// put fills the slot that the last find returned.
func (s *set) put(at, number int) {
	s.slots[at] = slot{uint32(number), s.hash}
	s.used++
}

func (s *set) home(hash uint32) int { return int(hash) & (len(s.slots) - 1) }
func (s *set) next(at int) int      { return (at + 1) & (len(s.slots) - 1) }

func (s *set) grow() {
	old := s.slots
	if old == nil {
		s.seed = maphash.MakeSeed()
	}
	s.slots = make([]slot, max(64, 4*len(old)))
	for _, filled := range old {
		if filled.number == 0 {
			continue
		}
		at := s.home(filled.hash)
		for s.slots[at].number != 0 {
			at = s.next(at)
		}
		s.slots[at] = filled
	}
}
