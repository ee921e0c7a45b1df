package recall

import (
	"cmp"
	"math/bits"
	"slices"
)

// matches are the scores of all documents for one question, by their numbers.
type matches struct {
	own, short, all, absolute, covered, rarest []fixed
	feedback, related, stretch, session, names []fixed
	bySpeaker, byOther                         []fixed
	matched, adjacent, dates, rank             []int
	before, after                              []int
	firstOf, lastOf                            []fixed
	addedBefore, addedAfter, around            []fixed
}

// The parameters of BM25: k1 is 1.2, b 0.75 or, for scores that depend less on the length, 0.3.
const (
	k1     = one * 12 / 10
	longB  = one * 75 / 100
	shortB = one * 30 / 100

	feedFrom = 8  // the best documents, whose stems are looked for as well
	feedWith = 20 // how many of their stems
)

// match computes the scores.
func (c *Corpus) match(q *question) *matches {
	n := len(c.documents)
	m := &matches{
		before: make([]int, n), after: make([]int, n), absolute: make([]fixed, n), covered: make([]fixed, n), rarest: make([]fixed, n),
		bySpeaker: make([]fixed, n), byOther: make([]fixed, n), names: make([]fixed, n), session: make([]fixed, n),
		matched: make([]int, n), adjacent: make([]int, n), dates: make([]int, n), rank: make([]int, n),
	}
	wanted, all := c.newSelection(), c.newSelection()
	for _, term := range q.terms {
		if term >= 0 {
			wanted.add(term, one)
		}
	}
	for _, term := range q.all {
		all.add(term, one)
	}
	hits := c.count(wanted)
	c.coverage(m, wanted, hits)
	m.own = c.bm25(wanted, hits, longB)
	best := slices.Max(append([]fixed{0}, m.own...))
	scale(m.own, best)
	m.short = c.bm25(wanted, hits, shortB)
	scale(m.short, slices.Max(append([]fixed{0}, m.short...)))
	m.all = c.bm25(all, c.count(all), longB)
	scale(m.all, slices.Max(append([]fixed{0}, m.all...)))
	total := c.rarityOf(wanted)
	for i, score := range m.own {
		m.absolute[i] = div(mul(mul(score, best), one*10/22), total)
	}
	c.adjacency(q, m, wanted)
	c.neighbours(m)
	c.feed(m, wanted)
	c.relatives(q, m, best)
	c.fields(q, m)
	c.mentions(m, wanted, hits)
	c.joint(m, wanted, hits)
	return m
}

// scale divides numbers by a greatest one.
func scale(values []fixed, by fixed) {
	for i := range values {
		values[i] = div(values[i], by)
	}
}

// selection is a list of stems with weights.
type selection struct {
	terms   []int32
	weights []fixed
	at      []int32 // by stem: its number in the list, from 1
}

func (c *Corpus) newSelection() *selection { return &selection{at: make([]int32, len(c.stems))} }

func (s *selection) add(term int32, weight fixed) {
	if s.at[term] > 0 {
		return
	}
	s.terms, s.weights = append(s.terms, term), append(s.weights, weight)
	s.at[term] = int32(len(s.terms))
}

// hit says how often a document has a stem.
type hit struct {
	document, term int32 // the term's number in the selection
	times          int32
}

// count finds the stems of a selection, by document.
func (c *Corpus) count(s *selection) []hit {
	var hits []hit
	if len(s.terms) == 0 {
		return nil
	}
	for i := range c.prepared {
		p := &c.prepared[i]
		for j, term := range p.terms {
			if k := s.at[term]; k > 0 {
				hits = append(hits, hit{int32(i), k - 1, p.times[j]})
			}
		}
	}
	return hits
}

// bm25 sums the scores of hits.
func (c *Corpus) bm25(s *selection, hits []hit, b fixed) []fixed {
	scores := make([]fixed, len(c.documents))
	rarities := make([]fixed, len(s.terms))
	for k, term := range s.terms {
		rarities[k] = mul(c.rarity(term), s.weights[k])
	}
	for _, h := range hits {
		length := div(fixed(len(c.prepared[h.document].order))<<16, c.average)
		times := fixed(h.times) << 16
		saturated := div(mul(times, k1+one), times+mul(k1, one-b+mul(b, length)))
		scores[h.document] += mul(rarities[h.term], saturated)
	}
	return scores
}

func (c *Corpus) rarityOf(s *selection) (total fixed) {
	for _, term := range s.terms {
		total += c.rarity(term)
	}
	return total
}

// coverage finds which share of the question a document has, by rarity.
func (c *Corpus) coverage(m *matches, s *selection, hits []hit) {
	total := c.rarityOf(s)
	for _, h := range hits {
		rarity := c.rarity(s.terms[h.term])
		m.covered[h.document] += rarity
		m.rarest[h.document] = max(m.rarest[h.document], rarity)
		m.matched[h.document]++
	}
	scale(m.covered, total)
}

// adjacency counts pairs of the question's neighbouring stems that are at most one stem apart in a document.
func (c *Corpus) adjacency(q *question, m *matches, wanted *selection) {
	type pair struct {
		second   int32
		document int // the last one that has it, from 1
	}
	follows := make([][]pair, len(wanted.terms)+1) // by the number of the first stem in the selection
	for i := 1; i < len(q.terms); i++ {
		if a, b := q.terms[i-1], q.terms[i]; a >= 0 && b >= 0 {
			pairs := &follows[wanted.at[a]]
			if !slices.ContainsFunc(*pairs, func(known pair) bool { return known.second == b }) {
				*pairs = append(*pairs, pair{second: b})
			}
		}
	}
	for i := range c.prepared {
		if m.matched[i] < 2 {
			continue
		}
		terms, order := c.prepared[i].terms, c.prepared[i].order
		for j, at := range order {
			pairs := follows[wanted.at[terms[at]]]
			for k := range pairs {
				isNear := func(at int32) bool { return terms[at] == pairs[k].second }
				if pairs[k].document != i+1 && slices.ContainsFunc(order[j+1:min(j+3, len(order))], isNear) {
					pairs[k].document = i + 1
					m.adjacent[i]++
				}
			}
		}
	}
}

// stretchReach and bell describe a stretch: the scores of neighbours up to so many seqs away, with the weights of a
// normal distribution of width 4.
const stretchReach = 12

var bell = [stretchReach + 1]fixed{6554, 6352, 5784, 4947, 3975, 3000, 2128, 1417, 887, 521, 288, 149, 73}

// neighbours computes what depends on the places of documents.
func (c *Corpus) neighbours(m *matches) {
	n := len(c.documents)
	m.stretch = make([]fixed, n)
	best := map[int32][]fixed{}
	for i := range n {
		m.before[i], m.after[i] = c.before(i), -1
		if m.before[i] >= 0 {
			m.after[i-1] = i
		}
		for j := i; j < n && c.documents[j].ConversationID == c.documents[i].ConversationID; j++ {
			apart := c.documents[j].Seq - c.documents[i].Seq
			if apart > stretchReach {
				break
			}
			m.stretch[i] += mul(m.own[j], bell[apart])
			if j > i {
				m.stretch[j] += mul(m.own[i], bell[apart])
			}
		}
		best[c.sessions[i]] = append(best[c.sessions[i]], m.own[i])
	}
	scale(m.stretch, slices.Max(append([]fixed{0}, m.stretch...)))
	sums := map[int32]fixed{}
	for session, scores := range best {
		slices.Sort(scores)
		for _, score := range scores[max(0, len(scores)-5):] {
			sums[session] += score
		}
	}
	for i := range n {
		m.session[i] = sums[c.sessions[i]]
	}
	scale(m.session, slices.Max(append([]fixed{0}, m.session...)))
	order := byScore(m.own, func(int) fixed { return one })
	for rank, i := range order {
		m.rank[i] = rank + 1
	}
}

// byScore returns the documents with a score, the best per unit first.
func byScore(scores []fixed, unit func(i int) fixed) []int {
	var order []int
	values := make([]fixed, len(scores))
	for i, score := range scores {
		if score > 0 {
			order = append(order, i)
			values[i] = div(score, unit(i))
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b))
	})
	return order
}

// feed scores documents by the stems that the best documents have in common with each other.
func (c *Corpus) feed(m *matches, wanted *selection) {
	order := byScore(m.own, func(i int) fixed { return sqrt(fixed(20+c.documents[i].Tokens) << 16) })
	sums := map[int32]fixed{}
	for _, i := range order[:min(len(order), feedFrom)] {
		p := &c.prepared[i]
		scale := div(m.own[i], sqrt(fixed(5+len(p.order))<<16))
		for _, term := range p.terms {
			if wanted.at[term] == 0 {
				sums[term] += mul(scale, c.rarity(term))
			}
		}
	}
	terms := make([]int32, 0, len(sums))
	for term := range sums {
		terms = append(terms, term)
	}
	slices.SortFunc(terms, func(a, b int32) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(c.text(a), c.text(b)))
	})
	more := c.newSelection()
	for _, term := range terms[:min(len(terms), feedWith)] {
		more.add(term, div(sums[term], sums[terms[0]]))
	}
	m.feedback = c.bm25(more, c.count(more), longB)
	scale(m.feedback, slices.Max(append([]fixed{0}, m.feedback...)))
}

// relatives scores documents by stems that begin like those of the question.
func (c *Corpus) relatives(q *question, m *matches, best fixed) {
	related := c.newSelection()
	for k, stem := range q.stems {
		_, prefix := c.vocabulary.of(stem)
		if prefix == 0 {
			continue
		}
		for term, its := range c.prefixes {
			if its == prefix && int32(term) != q.terms[k] {
				related.add(int32(term), one/2)
			}
		}
	}
	m.related = c.bm25(related, c.count(related), longB)
	for i := range m.related {
		m.related[i] = min(div(m.related[i], max(best, one)), 4*one)
	}
}

// fields matches speakers, dates and names.
func (c *Corpus) fields(q *question, m *matches) {
	names := c.newSelection()
	for _, term := range q.names {
		names.add(term, one)
	}
	for _, h := range c.count(names) {
		m.names[h.document] += one / fixed(q.named)
	}
	by := one
	if len(q.speakers) > 1 {
		by = one / 2
	}
	for i := range c.documents {
		for _, term := range c.prepared[i].dates {
			if q.dates[term] {
				m.dates[i]++
			}
		}
		if len(q.speakers) == 0 || c.documents[i].Speaker == "" {
			continue
		}
		if c.isBy(i, q.speakers) {
			m.bySpeaker[i] = by
		} else {
			m.byOther[i] = one
		}
	}
}

func (c *Corpus) isBy(i int, speakers map[string]bool) bool {
	for w := range words(c.documents[i].Speaker) {
		if speakers[w.Text] {
			return true
		}
	}
	return false
}

// mentions finds which share of the question, by rarity, documents are the first and the last to mention.
func (c *Corpus) mentions(m *matches, s *selection, hits []hit) {
	n := len(c.documents)
	m.firstOf, m.lastOf = make([]fixed, n), make([]fixed, n)
	first, last := make([]int32, len(s.terms)), make([]int32, len(s.terms)) // documents, from 1
	for _, h := range hits {
		if first[h.term] == 0 {
			first[h.term] = h.document + 1
		}
		last[h.term] = h.document + 1
	}
	total := c.rarityOf(s)
	for k, term := range s.terms {
		if first[k] > 0 {
			share := div(c.rarity(term), total)
			m.firstOf[first[k]-1] += share
			m.lastOf[last[k]-1] += share
		}
	}
}

// joint finds which share of the question documents have together with their neighbours, by rarity.
func (c *Corpus) joint(m *matches, s *selection, hits []hit) {
	n := len(c.documents)
	m.addedBefore, m.addedAfter, m.around = make([]fixed, n), make([]fixed, n), make([]fixed, n)
	const most = 64 // stems: those after them are not looked at
	var rarities [most]fixed
	for k, term := range s.terms[:min(most, len(s.terms))] {
		rarities[k] = c.rarity(term)
	}
	sets := make([]uint64, n)
	for _, h := range hits {
		if h.term < most {
			sets[h.document] |= 1 << h.term
		}
	}
	total := c.rarityOf(s)
	share := func(set uint64) (sum fixed) {
		for ; set != 0; set &= set - 1 {
			sum += rarities[bits.TrailingZeros64(set)]
		}
		return div(sum, total)
	}
	of := func(i int) uint64 {
		if i < 0 {
			return 0
		}
		return sets[i]
	}
	for i := range n {
		before, after := of(m.before[i]), of(m.after[i])
		m.addedBefore[i], m.addedAfter[i] = share(before&^sets[i]), share(after&^sets[i])
		m.around[i] = share(sets[i] | before | after | of(at32(m.before, m.before[i])) | of(at32(m.after, m.after[i])))
	}
}
