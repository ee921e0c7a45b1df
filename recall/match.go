package recall

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
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
func (c *Corpus) match(q *inquiry) *matches {
	n := len(c.documents)
	m := &matches{
		before: make([]int, n), after: make([]int, n), absolute: make([]fixed, n), covered: make([]fixed, n), rarest: make([]fixed, n),
		bySpeaker: make([]fixed, n), byOther: make([]fixed, n), names: make([]fixed, n), session: make([]fixed, n),
		matched: make([]int, n), adjacent: make([]int, n), dates: make([]int, n), rank: make([]int, n),
	}
	c.coverage(q, m)
	subject := slices.Repeat([]fixed{one}, q.subject)
	m.own = c.bm25(q.hits, q.rarities, subject, longB)
	best := scaleToBest(m.own)
	m.short = c.bm25(q.hits, q.rarities, subject, shortB)
	scaleToBest(m.short)
	m.all = c.bm25(q.hits, q.rarities, q.all, longB)
	scaleToBest(m.all)
	for i, score := range m.own {
		m.absolute[i] = div(mul(mul(score, best), one*10/22), q.total)
	}
	m.related = c.bm25(q.hits, q.rarities, q.related, longB)
	for i := range m.related {
		m.related[i] = min(div(m.related[i], max(best, one)), 4*one)
	}
	c.adjacency(q, m)
	c.neighbours(m)
	c.feed(q, m)
	c.fields(q, m)
	c.mentions(q, m)
	c.joint(q, m)
	return m
}

// scaleToBest divides numbers by the greatest, which it returns.
func scaleToBest(values []fixed) (best fixed) {
	for _, value := range values {
		best = max(best, value)
	}
	scale(values, best)
	return best
}

// scale divides numbers by a greatest one.
func scale(values []fixed, by fixed) {
	for i := range values {
		values[i] = div(values[i], by)
	}
}

// bm25 sums the scores of hits of stems with these weights; those after them have none.
func (c *Corpus) bm25(hits []hit, rarities, weights []fixed, b fixed) []fixed {
	scores := make([]fixed, len(c.documents))
	document, norm := int32(-1), fixed(0)
	for _, h := range hits {
		if int(h.term) >= len(weights) || weights[h.term] == 0 {
			continue
		}
		if h.document != document {
			document = h.document
			norm = mul(k1, one-b+mul(b, div(fixed(len(c.prepared[document].order))<<16, c.average)))
		}
		times := fixed(h.times) << 16
		scores[document] += mul(mul(rarities[h.term], weights[h.term]), div(mul(times, k1+one), times+norm))
	}
	return scores
}

// coverage finds which share of the question a document has, by rarity.
func (c *Corpus) coverage(q *inquiry, m *matches) {
	for _, h := range q.hits {
		if int(h.term) >= q.subject {
			continue
		}
		rarity := q.rarities[h.term]
		m.covered[h.document] += rarity
		m.rarest[h.document] = max(m.rarest[h.document], rarity)
		m.matched[h.document]++
	}
	scale(m.covered, q.total)
}

// adjacency counts pairs of the question's neighbouring stems that are at most one stem apart in a document.
func (c *Corpus) adjacency(q *inquiry, m *matches) {
	var pairs [][2]int // by the places of the stems
	for i, place := 0, 0; i < len(q.question.terms); i++ {
		if q.question.terms[i] < 0 {
			continue
		}
		if i > 0 && q.question.terms[i-1] >= 0 {
			pairs = append(pairs, [2]int{place - 1, place})
		}
		place++
	}
	places := make([]int32, q.subject) // of the stems in the document that is looked at, from 1
	for hits := range documentsOf(q.hits) {
		i := hits[0].document
		if m.matched[i] < 2 {
			continue
		}
		clear(places)
		for _, h := range hits {
			if int(h.term) < q.subject {
				places[h.term] = h.place + 1
			}
		}
		for _, pair := range pairs {
			if a, b := places[pair[0]], places[pair[1]]; a > 0 && b > 0 && isNear(c.prepared[i].order, a-1, b-1) {
				m.adjacent[i]++
			}
		}
	}
}

// documentsOf yields the hits of each document that has any.
func documentsOf(hits []hit) func(yield func([]hit) bool) {
	return func(yield func([]hit) bool) {
		for len(hits) > 0 {
			n := 1
			for n < len(hits) && hits[n].document == hits[0].document {
				n++
			}
			if !yield(hits[:n]) {
				return
			}
			hits = hits[n:]
		}
	}
}

// isNear reports whether a number is at most two places after another one.
func isNear(order []int32, first, second int32) bool {
	for j, at := range order {
		if at == first && slices.Contains(order[j+1:min(j+3, len(order))], second) {
			return true
		}
	}
	return false
}

// stretchReach and bell describe a stretch: the scores of neighbours up to so many seqs away, with the weights of a
// normal distribution of width 4.
const stretchReach = 12

var bell = [stretchReach + 1]fixed{6554, 6352, 5784, 4947, 3975, 3000, 2128, 1417, 887, 521, 288, 149, 73}

// neighbours computes what depends on the places of documents.
func (c *Corpus) neighbours(m *matches) {
	n := len(c.documents)
	m.stretch = make([]fixed, n)
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
	}
	scaleToBest(m.stretch)
	c.sumSessions(m)
	order := byScore(m.own, func(int) fixed { return one })
	for rank, i := range order {
		m.rank[i] = rank + 1
	}
}

// sumSessions sums the best scores of each session.
func (c *Corpus) sumSessions(m *matches) {
	const best = 5
	var scores []fixed
	for first := 0; first < len(m.own); {
		after := first + 1
		for after < len(m.own) && c.sessions[after] == c.sessions[first] {
			after++
		}
		scores = append(scores[:0], m.own[first:after]...)
		slices.Sort(scores)
		sum := fixed(0)
		for _, score := range scores[max(0, len(scores)-best):] {
			sum += score
		}
		for i := first; i < after; i++ {
			m.session[i] = sum
		}
		first = after
	}
	scaleToBest(m.session)
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
func (c *Corpus) feed(q *inquiry, m *matches) {
	order := byScore(m.own, func(i int) fixed { return sqrt(fixed(20+c.documents[i].Tokens) << 16) })
	order = order[:min(len(order), feedFrom)]
	list := c.vocabulary.list()
	defer c.vocabulary.free(list)
	list.add(q.terms[:q.subject]...)
	for _, i := range order {
		list.add(c.prepared[i].distinct...)
	}
	rarities := c.rarities(list)
	sums := make([]fixed, len(list.terms))
	for _, i := range order {
		p := &c.prepared[i]
		scale := div(m.own[i], sqrt(fixed(5+len(p.order))<<16))
		for _, term := range p.distinct {
			k := list.at[term] - 1
			sums[k] += mul(scale, rarities[k])
		}
	}
	clear(sums[:q.subject])
	weights := c.heaviest(list, sums, q.subject)
	m.feedback = c.bm25(c.find(list, weights), rarities, weights, longB)
	scaleToBest(m.feedback)
}

// heaviest returns the weights of the stems of a list with the highest sums, in the order of their texts where they are equal.
func (c *Corpus) heaviest(list *termList, sums []fixed, from int) []fixed {
	order := make([]int, 0, feedWith+1)
	compare := func(a, b int) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), strings.Compare(c.stems[list.terms[a]], c.stems[list.terms[b]]))
	}
	for k := from; k < len(sums); k++ {
		if len(order) == feedWith && sums[k] < sums[order[feedWith-1]] {
			continue
		}
		at, _ := slices.BinarySearchFunc(order, k, compare)
		order = slices.Insert(order, at, k)
		order = order[:min(len(order), feedWith)]
	}
	weights := make([]fixed, len(sums))
	for _, k := range order {
		weights[k] = div(sums[k], sums[order[0]])
	}
	return weights
}

// fields matches speakers, dates and names.
func (c *Corpus) fields(q *inquiry, m *matches) {
	for _, h := range q.hits {
		if q.names[h.term] > 0 {
			m.names[h.document] += one / fixed(q.named)
		}
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
func (c *Corpus) mentions(q *inquiry, m *matches) {
	n := len(c.documents)
	m.firstOf, m.lastOf = make([]fixed, n), make([]fixed, n)
	first, last := make([]int32, len(q.terms)), make([]int32, len(q.terms)) // documents, from 1
	for _, h := range q.hits {
		if first[h.term] == 0 {
			first[h.term] = h.document + 1
		}
		last[h.term] = h.document + 1
	}
	for k, rarity := range q.rarities[:q.subject] {
		if first[k] > 0 {
			share := div(rarity, q.total)
			m.firstOf[first[k]-1] += share
			m.lastOf[last[k]-1] += share
		}
	}
}

// joint finds which share of the question documents have together with their neighbours, by rarity.
func (c *Corpus) joint(q *inquiry, m *matches) {
	n := len(c.documents)
	m.addedBefore, m.addedAfter, m.around = make([]fixed, n), make([]fixed, n), make([]fixed, n)
	const most = 64                         // stems: those after them are not looked at
	var rarities []fixed                    // of the stems that some document has
	members := make([]uint64, len(q.terms)) // a bit for each of them
	for k, rarity := range q.rarities[:q.subject] {
		if rarity > 0 && len(rarities) < most {
			members[k] = 1 << len(rarities)
			rarities = append(rarities, rarity)
		}
	}
	sets := make([]uint64, n)
	for _, h := range q.hits {
		sets[h.document] |= members[h.term]
	}
	share := func(set uint64) (sum fixed) {
		for ; set != 0; set &= set - 1 {
			sum += rarities[bits.TrailingZeros64(set)]
		}
		return div(sum, q.total)
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
