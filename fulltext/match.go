package fulltext

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// Match says where an entry matches a query, and with which score.
type Match struct {
	// Score orders matches: the higher, the better; always positive. It depends on the query and the texts alone,
	// and is the same on every machine.
	Score int64
	// Hits are the positions of the query's words and phrases, in the order of the texts: the first few of
	// each, and those closest together. They may overlap.
	Hits []Hit

	query Query
	best  []Hit // one of each phrase, those closest together first
}

// Hit is a word or phrase of the query in one of an entry's texts.
type Hit struct {
	Field      int // of the texts, from 0
	Start, End int // in bytes
}

// maxHits is about how many hits a match keeps, besides those closest together.
const maxHits = 64

// Match decides whether an entry with these texts matches. Words may be in different texts; a phrase must be
// within one.
func (q Query) Match(texts ...string) (Match, bool) {
	if q.wanted == 0 {
		return Match{}, false
	}
	t := tally{query: q, counts: make([]count, q.wanted), near: make([]last, q.wanted)}
	for field, text := range texts {
		if !t.text(field, text) {
			return Match{}, false
		}
	}
	if !t.isMatch() {
		return Match{}, false
	}
	best := t.bestOfEach()
	hits := append(t.hits, best...)
	slices.SortFunc(hits, inOrder)
	return Match{Score: t.score(), Hits: slices.Compact(hits), query: q, best: best}, true
}

// isMatch reports whether enough of the phrases were found.
func (t *tally) isMatch() bool {
	occurs := func(c count) bool { return c.complete+c.longer > 0 }
	missing := func(c count) bool { return !occurs(c) }
	switch q := t.query; {
	case !q.loose:
		return !slices.ContainsFunc(t.counts, missing)
	case q.required > 0:
		return !slices.ContainsFunc(t.counts[:q.required], missing)
	default:
		return q.free || slices.ContainsFunc(t.counts, occurs)
	}
}

func inOrder(a, b Hit) int {
	return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
}

// tally is the state of matching an entry while its texts are read.
type tally struct {
	query  Query
	tokens int
	counts []count // by phrase
	near   []last  // by phrase
	hits   []Hit

	closeness int64 // the best of all positions
	closest   []Hit // the hits at that position, the nearest first
}

// count is how often a phrase occurs, exactly and with a longer last word.
type count struct {
	complete, longer int
	first            Hit
}

// last is the last position of a phrase in the text.
type last struct {
	hit         Hit
	first, last int // tokens
	seen        bool
}

// text reads one text; false means that it contains an excluded phrase.
func (t *tally) text(field int, text string) bool {
	clear(t.near)
	allowed := true
	t.tokens += t.query.scan(text, func(f found) bool {
		if f.phrase >= t.query.wanted {
			allowed = false
			return false
		}
		t.found(f, Hit{Field: field, Start: f.start, End: f.end})
		return true
	})
	return allowed
}

func (t *tally) found(f found, hit Hit) {
	count := &t.counts[f.phrase]
	n := count.complete + count.longer
	if n == 0 {
		count.first = hit
	}
	if n < max(2, maxHits/len(t.counts)) {
		t.hits = append(t.hits, hit)
	}
	if f.complete {
		count.complete++
	} else {
		count.longer++
	}
	t.near[f.phrase] = last{hit: hit, first: f.first, last: f.last, seen: true}
	if len(t.counts) > 1 {
		t.closer(f)
	}
}

// A phrase next to another one scores sideBySide; one that follows at a distance, less.
const (
	sideBySide = 1024
	halfAt     = 8 // number of tokens between them that halves the score
)

// closer records the position of a found phrase, if the others were closest before it.
func (t *tally) closer(f found) {
	var sum int64
	for other, near := range t.near {
		if near.seen && other != f.phrase {
			sum += closeness(near, f, other < f.phrase)
		}
	}
	if sum <= t.closeness {
		return
	}
	t.closeness = sum
	seen := make([]last, 0, len(t.near))
	for _, near := range t.near {
		if near.seen {
			seen = append(seen, near)
		}
	}
	slices.SortStableFunc(seen, func(a, b last) int { return b.last - a.last })
	t.closest = t.closest[:0]
	for _, near := range seen {
		t.closest = append(t.closest, near.hit)
	}
}

// closeness scores how near a phrase is before another one; less in the other order than in the query.
func closeness(before last, f found, inOrder bool) int64 {
	between := int64(max(0, f.first-before.last-1))
	worth := sideBySide * halfAt / (halfAt + between)
	if !inOrder {
		worth -= worth / 4
	}
	return worth
}

// bestOfEach returns the hits closest together, and the first of every other phrase.
func (t *tally) bestOfEach() []Hit {
	best := slices.Clone(t.closest)
	for _, count := range t.counts {
		if count.complete+count.longer > 0 && !slices.Contains(best, count.first) && len(best) < 2*len(t.counts) {
			best = append(best, count.first)
		}
	}
	return best
}

// score sums the phrases' scores as in BM25: further occurrences count ever less, and less in longer entries.
// The rarity of a word is unknown; its length is used instead. Nearness of phrases can up to double the
// score.
func (t *tally) score() int64 {
	var sum int64
	for number, count := range t.counts {
		sum += t.query.phrases[number].weight() * t.saturated(count)
	}
	if n := int64(len(t.counts)); n > 1 {
		sum += sum * t.closeness / ((n - 1) * sideBySide)
	}
	return max(1, sum)
}

// usualTokens is the length of an average entry.
const usualTokens = 150

// saturated is BM25's share of a phrase, with k1 = 1.2 and b = 0.75, times 10 000. An exact occurrence counts
// as four with a longer last word, and a phrase without exact occurrences scores half.
func (t *tally) saturated(c count) int64 {
	units := 100 * (4*int64(c.complete) + int64(c.longer))
	length := min(int64(t.tokens), 1_000*usualTokens)
	share := 22_000 * units / (units + 120 + 360*length/usualTokens)
	if c.complete == 0 {
		share /= 2
	}
	return share
}

// weight estimates the specificity of a phrase by its length.
func (p phrase) weight() int64 {
	chars := 0
	for _, w := range p.words {
		n := utf8.RuneCountInString(w.text)
		if w.wide {
			n *= 2
		}
		chars += min(n, 12)
	}
	return int64(2 + min(chars, 38))
}
