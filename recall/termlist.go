package recall

// termList is a list of stems, by their numbers in a vocabulary, which are found in documents by their places in the list. Lists
// are taken from the vocabulary, and given back to it.
type termList struct {
	terms []int32
	at    []int32 // by stem: its place in the list, from 1; 0 for one that the list does not have
}

// list returns an empty list, for the stems that the vocabulary has now.
func (v *vocabulary) list() *termList {
	v.mu.Lock()
	known := len(v.stems)
	v.mu.Unlock()
	if l, _ := v.lists.Get().(*termList); l != nil && len(l.at) >= known {
		return l
	}
	return &termList{at: make([]int32, known+known/4)}
}

// free gives a list back.
func (v *vocabulary) free(l *termList) {
	for _, term := range l.terms {
		l.at[term] = 0
	}
	l.terms = l.terms[:0]
	v.lists.Put(l)
}

// add adds stems that the list does not have.
func (l *termList) add(terms ...int32) {
	for _, term := range terms {
		if l.at[term] == 0 {
			l.terms = append(l.terms, term)
			l.at[term] = int32(len(l.terms))
		}
	}
}

// hit says how often a document has a stem of a list.
type hit struct {
	document, term int32 // the stem's place in the list, from 0
	place          int32 // of the stem among the distinct ones of the document
	times          int32
}

// find finds the stems of a list that have a weight in the documents.
func (c *Corpus) find(l *termList, weights []fixed) (hits []hit) {
	for i := range c.prepared {
		p := &c.prepared[i]
		for j, term := range p.distinct {
			if k := l.at[term]; k > 0 && weights[k-1] > 0 {
				hits = append(hits, hit{int32(i), k - 1, int32(j), p.times[j]})
			}
		}
	}
	return hits
}

// rarities returns the logarithms of how rare the stems of a list are in the collection; 0 for one that no document of the
// corpus has.
func (c *Corpus) rarities(l *termList) []fixed {
	counts := make([]int32, len(l.terms)+1) // documents that have each, by its place; the first is that of all other stems
	for i := range c.prepared {
		for _, term := range c.prepared[i].distinct {
			counts[l.at[term]]++
		}
	}
	rarities, known := make([]fixed, len(l.terms)), make([]fixed, len(c.documents)+1) // by count
	for k := range rarities {
		in := int64(counts[k+1])
		if in > 0 && known[in] == 0 {
			known[in] = Rarity(in*c.total/int64(len(c.documents)), c.total)
		}
		rarities[k] = known[in]
	}
	for term, count := range c.counted {
		if int(term) >= len(l.at) {
			continue
		}
		if k := l.at[term]; k > 0 && counts[k] > 0 {
			rarities[k-1] = Rarity(max(int64(counts[k]), count), c.total)
		}
	}
	return rarities
}
