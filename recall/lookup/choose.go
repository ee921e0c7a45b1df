package lookup

import (
	"cmp"
	"slices"

	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/vector"
)

// choose selects the places that are read: those with the rarest stems, their neighbours, and those that are found by
// their form.
func choose(request Request, terms []recall.Term, hits found, near vector.Near) ([]place, recall.Statistics) {
	lists := hits.terms[1:]
	statistics := recall.Statistics{Counts: map[string]int64{}, Documents: documentsOf(request, lists)}
	order := make([]int, 0, len(terms))
	for i := range terms {
		if lists[i].len() > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lists[a].len(), lists[b].len()) })
	scores := boards{}
	for _, i := range order[:min(len(order), counted)] {
		n := int64(lists[i].len())
		statistics.Counts[terms[i].Stem] = n
		scores.add(request, lists[i], recall.Rarity(n, statistics.Documents))
	}
	signals := hits.terms[0]
	rarity := recall.Rarity(int64(signals.len()), statistics.Documents)
	signals.own = signals.own[max(0, len(signals.own)-maxSignals):]
	signals.others = signals.others[:min(len(signals.others), maxSignals-len(signals.own))]
	scores.add(request, signals, rarity)
	for at := range near {
		hit := index.Hit{ConversationID: at.ConversationID, Seq: at.Seq}
		scores.add(request, termHits{others: []index.Hit{hit}}, recall.Rarity(1, statistics.Documents))
	}
	places := best(scores.around(request.Candidates), request.Candidates)
	slices.SortFunc(places, func(a, b scored) int { return comparePlaces(a.place, b.place) })
	chosen := make([]place, len(places))
	for i := range places {
		chosen[i] = places[i].place
	}
	return chosen, statistics
}

// scored is a place with its score.
type scored struct {
	place
	score int64
}

// compareScored orders by falling score, then newer before older.
func compareScored(a, b scored) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.seq, a.seq), cmp.Compare(a.conversation, b.conversation))
}

// best returns the first so many places, in any order.
func best(places []scored, n int) []scored {
	if len(places) <= n {
		return places
	}
	for first, last := 0, len(places)-1; first < last; { // quickselect
		pivot := places[(first+last)/2]
		i, j := first, last
		for i <= j {
			for compareScored(places[i], pivot) < 0 {
				i++
			}
			for compareScored(places[j], pivot) > 0 {
				j--
			}
			if i <= j {
				places[i], places[j] = places[j], places[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			last = j
		case n >= i:
			first = i
		default:
			return places[:n]
		}
	}
	return places[:n]
}

// boards are the scores of places, by conversation.
type boards map[string]*board

func (b boards) add(request Request, hits termHits, score int64) {
	if len(hits.own) > 0 {
		own := b.of(request.Conversation.ID)
		for _, seq := range hits.own {
			own.add(seq, score)
		}
	}
	for _, hit := range hits.others {
		at := placeOf(request, hit)
		b.of(at.conversation).add(at.seq, score)
	}
}

func (b boards) of(conversation string) *board {
	on := b[conversation]
	if on == nil {
		on = &board{}
		b[conversation] = on
	}
	return on
}

// around returns the places and their neighbours: one beside a place has half its score, the next one a quarter. Those that cannot
// be among the best so many are left out.
func (b boards) around(most int) (places []scored) {
	least := b.least(most)
	for conversation, on := range b {
		begin := len(places)
		for seq, score := range on.all() {
			for apart := int64(0); apart <= reach && score >= least; apart++ {
				places = raise(places, begin, scored{place{conversation, seq - apart}, score})
				places = raise(places, begin, scored{place{conversation, seq + apart}, score})
				score /= 2
			}
		}
	}
	return places
}

// least returns a score that so many places have at least: that of the last of the best, or 0 where there are not so many.
func (b boards) least(most int) int64 {
	best := make(lowest, 0, most)
	for _, on := range b {
		for _, score := range on.all() {
			best.add(score)
		}
	}
	if len(best) < most {
		return 0
	}
	return best[0]
}

// lowest is a heap of the highest scores, as many as it has room for, with the lowest of them at the top.
type lowest []int64

func (l *lowest) add(score int64) {
	if len(*l) < cap(*l) {
		*l = append(*l, score)
		if len(*l) == cap(*l) {
			slices.Sort(*l) // is a heap
		}
		return
	}
	heap := *l
	if score <= heap[0] {
		return
	}
	at := 0
	for child := 1; child < len(heap); child = 2*at + 1 {
		if child+1 < len(heap) && heap[child+1] < heap[child] {
			child++
		}
		if heap[child] >= score {
			break
		}
		heap[at], at = heap[child], child
	}
	heap[at] = score
}

// raise makes the score of a place at least so much. The places from an index on are of one conversation and ordered by their seqs, few of which
// are higher.
func raise(places []scored, from int, one scored) []scored {
	at := len(places)
	for at > from && places[at-1].seq > one.seq {
		at--
	}
	if at > from && places[at-1].seq == one.seq {
		places[at-1].score = max(places[at-1].score, one.score)
		return places
	}
	return slices.Insert(places, at, one)
}

// board has scores by seq, in pages.
type board struct{ pages []*boardPage }

const boardPageSize = 256

// boardPage has the scores of seqs that follow one another, as twice the score and 1, or 0 for none.
type boardPage [boardPageSize]int64

// at is where the score of a seq is.
func (b *board) at(seq int64) *int64 {
	page := int(seq / boardPageSize)
	for len(b.pages) <= page {
		b.pages = append(b.pages, nil)
	}
	if b.pages[page] == nil {
		b.pages[page] = &boardPage{}
	}
	return &b.pages[page][seq%boardPageSize]
}

// add adds to a score, and returns the sum.
func (b *board) add(seq, score int64) int64 {
	at := b.at(seq)
	*at = (*at + 2*score) | 1
	return *at >> 1
}

// all yields the scores by rising seq.
func (b *board) all() func(yield func(seq, score int64) bool) {
	return func(yield func(seq, score int64) bool) {
		for p, page := range b.pages {
			if page == nil {
				continue
			}
			for i, value := range page {
				if value != 0 && !yield(int64(p*boardPageSize+i), value>>1) {
					return
				}
			}
		}
	}
}

// documentsOf estimates how many entries are searched.
func documentsOf(request Request, lists []termHits) int64 {
	documents := request.To
	if request.Scope != Conversation || len(request.Extra) > 0 {
		documents = max(documents, fewestDocuments)
	}
	for i := range lists {
		documents = max(documents, 2*int64(lists[i].len()))
	}
	return documents
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.conversation, b.conversation), cmp.Compare(a.seq, b.seq))
}

// placeOf is the place of a hit. The searched conversation has its ancestors' entries too.
func placeOf(request Request, hit index.Hit) place {
	if request.Scope == Conversation || request.isOwn(hit) {
		return place{request.Conversation.ID, hit.Seq}
	}
	return place{hit.ConversationID, hit.Seq}
}
