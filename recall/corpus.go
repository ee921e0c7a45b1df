package recall

import (
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// Corpus is a list of documents, prepared for queries. It numbers the stems of its documents itself, in the order in which
// they occur.
type Corpus struct {
	documents  []Document
	prepared   []prepared
	vocabulary *vocabulary
	numbers    numbers // of the vocabulary's stems
	stems      []int32 // the vocabulary's numbers, by number
	prefixes   []int32 // those of the stems' beginnings
	known      []stem  // of the vocabulary
	counts     []int32 // documents of the list with a stem
	speakers   map[string]bool
	named      bool // some document names its speaker
	average    fixed
	total      int64 // documents of the collection
	counted    map[string]int64
	sessions   []int32
}

// prepared is what is known of a document before there is a query.
type prepared struct {
	*form
	terms   []int32 // the form's distinct stems, with the corpus's numbers
	dates   []int32
	logCost fixed
}

// NewCorpus prepares documents that are ranked once.
func NewCorpus(statistics Statistics, documents []Document) *Corpus {
	return newCorpus(newVocabulary(), statistics, documents)
}

// Corpus prepares documents.
func (a *Analyzer) Corpus(statistics Statistics, documents []Document) *Corpus {
	return newCorpus(a.vocabulary(), statistics, documents)
}

func newCorpus(vocabulary *vocabulary, statistics Statistics, documents []Document) *Corpus {
	c := &Corpus{
		documents: documents, prepared: make([]prepared, len(documents)), vocabulary: vocabulary, speakers: map[string]bool{},
		counted: statistics.Counts, total: max(statistics.Documents, int64(len(documents))),
	}
	length, distinct := 0, 0
	for i := range documents {
		d := &documents[i]
		if d.Speaker != "" {
			c.named = true
			for token := range fulltext.Tokens(d.Speaker) {
				c.speakers[token.Text] = true
			}
		}
		c.prepared[i] = prepared{form: vocabulary.form(d.Text), logCost: ln(fixed(10+d.Tokens)<<16) - 4*one}
		length += len(c.prepared[i].order)
		distinct += len(c.prepared[i].distinct)
	}
	c.number(distinct)
	c.average = max(one, div(fixed(length), fixed(max(1, len(documents)))))
	c.divide()
	return c
}

// number numbers the stems of the documents, which have so many together, and counts the documents that have each.
func (c *Corpus) number(distinct int) {
	v := c.vocabulary
	v.mu.Lock()
	defer v.mu.Unlock()
	terms := make([]int32, 0, distinct)
	c.numbers.grow(distinct / 2)
	own := func(term int32) int32 {
		n, isNew := c.numbers.of(term, int32(len(c.stems)))
		if isNew {
			c.stems, c.prefixes, c.counts = append(c.stems, term), append(c.prefixes, v.stems[term].prefix), append(c.counts, 0)
		}
		return n
	}
	for i := range c.prepared {
		p := &c.prepared[i]
		first := len(terms)
		for _, term := range p.distinct {
			n := own(term)
			terms = append(terms, n)
			c.counts[n]++
		}
		p.terms = terms[first:len(terms):len(terms)]
		for _, word := range dateWords(c.documents[i].At) {
			p.dates = append(p.dates, own(v.number(word)))
		}
	}
	c.known = v.stems
}

// text is the text of a stem.
func (c *Corpus) text(term int32) string { return c.known[c.stems[term]].text }

// numbers maps numbers of a vocabulary to those of a corpus: a table with open addressing, at most half full.
type numbers struct {
	places []numbered
	used   int
}

// numbered is a number, as key, and its value. A key is a number and 1; 0 for a free place.
type numbered struct{ key, value int32 }

// place returns the place of a key, or the free one for it.
func (n *numbers) place(key int32) *numbered {
	last := len(n.places) - 1
	at := int(uint32(key)*2654435769>>7) & last
	for n.places[at].key != 0 && n.places[at].key != key {
		at = (at + 1) & last
	}
	return &n.places[at]
}

// of returns the value of a number. Next is that of a new one.
func (n *numbers) of(number, next int32) (value int32, isNew bool) {
	if 2*n.used >= len(n.places) {
		n.grow(2 * n.used)
	}
	at := n.place(number + 1)
	if at.key != 0 {
		return at.value, false
	}
	*at = numbered{number + 1, next}
	n.used++
	return next, true
}

// grow makes room for so many numbers.
func (n *numbers) grow(most int) {
	size := max(64, len(n.places))
	for size < 2*most {
		size *= 2
	}
	before := n.places
	n.places = make([]numbered, size)
	for _, one := range before {
		if one.key != 0 {
			*n.place(one.key) = one
		}
	}
}

// find returns the value of a number; -1 for none.
func (n *numbers) find(number int32) int32 {
	if len(n.places) == 0 || number < 0 {
		return -1
	}
	if at := n.place(number + 1); at.key != 0 {
		return at.value
	}
	return -1
}

// lookUp returns the number of a stem that some document has; -1 for none.
func (c *Corpus) lookUp(stem string) int32 {
	term, _ := c.vocabulary.of(stem)
	return c.numbers.find(term)
}

// dateWords are the words by which a question names a day.
func dateWords(at time.Time) []string {
	if at.IsZero() {
		return nil
	}
	year, month, day := at.UTC().Date()
	return []string{months[month-1], strconv.Itoa(day), strconv.Itoa(year)}
}

// months are the stems of the names of months.
var months = func() (stems [12]string) {
	for month := range stems {
		stems[month] = fulltext.Stem(strings.ToLower(time.Month(month + 1).String()))
	}
	return stems
}()

// sessionGap ends a session.
const sessionGap = time.Hour

// divide numbers the sessions of the documents.
func (c *Corpus) divide() {
	c.sessions = make([]int32, len(c.documents))
	var session int32
	for i := range c.documents {
		if i > 0 {
			last, next := &c.documents[i-1], &c.documents[i]
			if last.ConversationID != next.ConversationID || next.At.Sub(last.At) > sessionGap {
				session++
			}
		}
		c.sessions[i] = session
	}
}

// rarity is the logarithm of how rare a stem is in the collection; 0 for one that no document of the list has.
func (c *Corpus) rarity(term int32) fixed {
	in := int64(c.counts[term])
	if in == 0 {
		return 0
	}
	if count, ok := c.counted[c.text(term)]; ok {
		in = max(in, count)
	} else if len(c.documents) > 0 {
		in = in * c.total / int64(len(c.documents))
	}
	return Rarity(in, c.total)
}

// maxGap is how far the seqs of neighbours are apart: entries without words are not documents.
const maxGap = 3

// before returns the number of the document before one, or -1.
func (c *Corpus) before(i int) int {
	if i > 0 && c.documents[i-1].ConversationID == c.documents[i].ConversationID && c.documents[i].Seq-c.documents[i-1].Seq <= maxGap {
		return i - 1
	}
	return -1
}

func (c *Corpus) isUser(i int) bool { return c.documents[i].Role == continuo.User }
