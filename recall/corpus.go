package recall

import (
	"slices"
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
	id         int64   // in the vocabulary
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
	news    fixed // how many stems no document before it has: half the logarithm of the number and 1
	logCost fixed
	place   fixed // in the documents of its conversation, from -1/2 for the first to 1/2 for the last; nearer to 0 where they are few
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
	c.arrange()
	return c
}

// number numbers the stems of the documents, which have so many together, and counts the documents that have each.
func (c *Corpus) number(distinct int) {
	v := c.vocabulary
	v.mu.Lock()
	defer v.mu.Unlock()
	terms := make([]int32, 0, distinct)
	v.corpus++
	c.id = v.corpus
	own := func(term int32) int32 {
		known := &v.numbered[term]
		if known.in != c.id {
			*known = occurrence{c.id, int32(len(c.stems))}
			c.stems, c.prefixes, c.counts = append(c.stems, term), append(c.prefixes, v.stems[term].prefix), append(c.counts, 0)
		}
		return known.number
	}
	for i := range c.prepared {
		p := &c.prepared[i]
		first, known := len(terms), len(c.stems)
		for _, term := range p.distinct {
			n := own(term)
			terms = append(terms, n)
			c.counts[n]++
		}
		p.news = logCount(len(c.stems) - known)
		p.terms = terms[first:len(terms):len(terms)]
		for _, word := range dateWords(c.documents[i].At) {
			p.dates = append(p.dates, own(v.number(word)))
		}
	}
	c.known = v.stems
}

// text is the text of a stem.
func (c *Corpus) text(term int32) string { return c.known[c.stems[term]].text }

// lookUp returns the number of a stem that some document has; -1 for none.
func (c *Corpus) lookUp(stem string) int32 {
	v := c.vocabulary
	v.mu.Lock()
	defer v.mu.Unlock()
	term, ok := v.terms[stem]
	switch {
	case !ok:
		return -1
	case v.corpus != c.id:
		return int32(slices.Index(c.stems, term))
	case v.numbered[term].in != c.id:
		return -1
	}
	return v.numbered[term].number
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

// fewDocuments is how many documents of a conversation halve the distance of their places from the middle.
const fewDocuments = 8

// arrange finds the places of the documents in their conversations.
func (c *Corpus) arrange() {
	for first := 0; first < len(c.documents); {
		after := first + 1
		for after < len(c.documents) && c.documents[after].ConversationID == c.documents[first].ConversationID {
			after++
		}
		for i := first; i < after; i++ {
			c.prepared[i].place = div(fixed(2*i-first-after+1), fixed(2*(after-first+fewDocuments)))
		}
		first = after
	}
}

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
