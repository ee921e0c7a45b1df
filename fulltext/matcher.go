package fulltext

// matcher finds the phrases of a query in a text, in one pass over its tokens.
type matcher struct {
	ids     map[string]int32 // of the words of all phrases
	lists   [][]int32        // the phrases' words
	endWith [][]int          // by id: the phrases whose last word it is
	longer  []longer
	begins  [256]bool // first bytes of longer
	ring    int       // number of tokens kept; a power of two
}

// longer is a phrase whose last word may be longer in the text.
type longer struct {
	text   string
	phrase int
}

// found is an occurrence of a phrase.
type found struct {
	phrase      int
	start, end  int // in bytes
	first, last int // tokens, counted from the beginning of the text
	complete    bool
}

func newMatcher(phrases []phrase) *matcher {
	m := &matcher{ids: map[string]int32{}, ring: 1}
	for number, phrase := range phrases {
		var list []int32
		for _, w := range phrase.words {
			list = append(list, m.id(w.text))
		}
		last := list[len(list)-1]
		m.lists = append(m.lists, list)
		m.endWith[last] = append(m.endWith[last], number)
		if text := phrase.words[len(list)-1].text; phrase.prefix {
			m.longer = append(m.longer, longer{text, number})
			m.begins[text[0]] = true
		}
		for m.ring < len(list) {
			m.ring *= 2
		}
	}
	return m
}

func (m *matcher) id(text string) int32 {
	id, ok := m.ids[text]
	if !ok {
		id = int32(len(m.ids))
		m.ids[text] = id
		m.endWith = append(m.endWith, nil)
	}
	return id
}

// seen is a token that may begin a phrase.
type seen struct {
	id    int32 // -1 for words of no phrase
	start int
}

// smallQuery is an upper bound of the words in most phrases. A power of two.
const smallQuery = 8

// scan calls each for each occurrence of a phrase, in the order of their ends, until it returns false. It
// returns the number of tokens read.
func (m *matcher) scan(text string, each func(found) bool) (tokens int) {
	s := newScanner(text)
	ring := make([]seen, smallQuery)
	if m.ring > smallQuery {
		ring = make([]seen, m.ring)
	}
	for ; s.next(); tokens++ {
		id, known := m.ids[string(s.folded)]
		if !known {
			id = -1
		}
		ring[tokens&(len(ring)-1)] = seen{id, s.start}
		if known {
			for _, phrase := range m.endWith[id] {
				if f, ok := m.endsAt(phrase, tokens, ring); ok {
					f.end, f.complete = s.end, true
					if !each(f) {
						return tokens
					}
				}
			}
		}
		if !m.begins[s.folded[0]] {
			continue
		}
		for _, longer := range m.longer {
			n := len(longer.text)
			if len(s.folded) <= n || string(s.folded[:n]) != longer.text {
				continue
			}
			if f, ok := m.endsAt(longer.phrase, tokens, ring); ok {
				f.end = s.end
				if !each(f) {
					return tokens
				}
			}
		}
	}
	return tokens
}

// endsAt reports whether the words before a phrase's last one precede the token.
func (m *matcher) endsAt(phrase, token int, ring []seen) (found, bool) {
	list := m.lists[phrase]
	first := token - len(list) + 1
	if first < 0 {
		return found{}, false
	}
	for i, id := range list[:len(list)-1] {
		if ring[(first+i)&(len(ring)-1)].id != id {
			return found{}, false
		}
	}
	return found{phrase: phrase, start: ring[first&(len(ring)-1)].start, first: first, last: token}, true
}
