package search

import (
	"cmp"
	"slices"
)

// place is the position of an entry that may match.
type place struct {
	conversation string
	seq          int64
}

// places have scores, and the order in the index. Their conversations are numbered: a search compares ten thousands of places.
type places struct {
	numbers map[string]int64 // of the conversations
	names   []string
	worths  map[key]worth
}

// key is the number of a conversation and a seq.
type key int64

const seqBits = 40

// worth is what is known of a place: the entry was found itself, or stands beside one.
type worth struct{ score, order int64 }

// ranked is a place with what it is worth.
type ranked struct {
	key
	worth
}

func newPlaces() *places {
	return &places{numbers: map[string]int64{}, worths: map[key]worth{}}
}

// keyOf returns the key of a place; known is false if no place of its conversation was added.
func (p *places) keyOf(at place) (_ key, known bool) {
	number, known := p.numbers[at.conversation]
	return key(number<<seqBits | at.seq), known
}

func (p *places) placeOf(k key) place { return place{p.names[k>>seqBits], k.seq()} }

func (k key) seq() int64 { return int64(k) & (1<<seqBits - 1) }

func (p *places) add(at place, score, order int64) {
	k, known := p.keyOf(at)
	if !known {
		number := int64(len(p.names))
		p.numbers[at.conversation], p.names = number, append(p.names, at.conversation)
		k = key(number<<seqBits | at.seq)
	}
	p.worths[k] = worth{p.worths[k].score + score, cmp.Or(order, p.worths[k].order)}
}

func (p *places) has(at place) bool {
	k, known := p.keyOf(at)
	if !known {
		return false
	}
	_, known = p.worths[k]
	return known
}

func (p *places) score(at place) int64 {
	k, known := p.keyOf(at)
	if !known {
		return 0
	}
	return p.worths[k].score
}

func (p *places) order(at place) int64 {
	k, known := p.keyOf(at)
	if !known {
		return 0
	}
	return p.worths[k].order
}

// neighbourReach is how far from a match entries are read that may have none of a question's words.
const neighbourReach = 2

// inOrder returns the first so many places, those first that are worth most. An entry beside a place has half its score, the next
// one a quarter.
func (p *places) inOrder(withNeighbours bool, most int) []place {
	all := make([]ranked, 0, len(p.worths))
	for k, worth := range p.worths {
		all = append(all, ranked{k, worth})
	}
	all = p.first(all, most)
	if withNeighbours { // of the others none is worth as much as one of these
		all = p.first(p.spread(all), most)
	}
	found := make([]place, len(all))
	for i := range all {
		found[i] = p.placeOf(all[i].key)
	}
	return found
}

// spread adds neighbours.
func (p *places) spread(all []ranked) []ranked {
	scores := make(map[key]int64, 3*len(all))
	for _, one := range all {
		scores[one.key] = max(scores[one.key], one.score)
		score := one.score
		for apart := int64(1); apart <= neighbourReach && one.seq() > 0; apart++ {
			score /= 2
			for _, seq := range []int64{one.seq() - apart, one.seq() + apart} {
				if beside := one.key - key(one.seq()-seq); seq > 0 {
					scores[beside] = max(scores[beside], score, p.worths[beside].score)
				}
			}
		}
	}
	spread := make([]ranked, 0, len(scores))
	for k, score := range scores {
		spread = append(spread, ranked{k, worth{score, p.worths[k].order}})
	}
	return spread
}

func (p *places) compare(a, b ranked) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.order, a.order), cmp.Compare(p.names[a.key>>seqBits], p.names[b.key>>seqBits]), cmp.Compare(b.key.seq(), a.key.seq()))
}

// first returns the first so many.
func (p *places) first(all []ranked, n int) []ranked {
	slices.SortFunc(all, p.compare)
	return all[:min(n, len(all))]
}
