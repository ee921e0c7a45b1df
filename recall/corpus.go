package recall

import (
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// Corpus is a list of documents, prepared for queries. It is not safe for concurrent use.
type Corpus struct {
	documents  []Document
	prepared   []prepared
	vocabulary *vocabulary
	stems      []string // of the vocabulary
	speakers   map[string]bool
	named      bool // some document names its speaker
	average    fixed
	total      int64           // documents of the collection
	counted    map[int32]int64 // by stem: documents of the collection that have it
	sessions   []int32
	asked      *inquiry // the newest query
}

// prepared is what is known of a document before there is a query.
type prepared struct {
	*form
	dates   []int32 // stems
	news    fixed   // how many stems no document before it has: half the logarithm of the number and 1
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
		total: max(statistics.Documents, int64(len(documents))),
	}
	length := 0
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
	}
	c.number(statistics.Counts)
	c.findNews()
	c.average = max(one, div(fixed(length), fixed(max(1, len(documents)))))
	c.divide()
	c.arrange()
	return c
}

// number numbers the stems of the collection's counts, and those of the documents' days.
func (c *Corpus) number(counts map[string]int64) {
	v := c.vocabulary
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range c.prepared {
		p := &c.prepared[i]
		if i > 0 && isSameDay(c.documents[i].At, c.documents[i-1].At) {
			p.dates = c.prepared[i-1].dates
			continue
		}
		for _, word := range dateWords(c.documents[i].At) {
			p.dates = append(p.dates, v.number(word))
		}
	}
	c.stems = v.stems
	c.counted = make(map[int32]int64, len(counts))
	for stem, count := range counts {
		if term, ok := v.terms[stem]; ok {
			c.counted[term] = count
		}
	}
}

// findNews counts how many stems no document before has, in its text or as the words of its day.
func (c *Corpus) findNews() {
	seen := make([]uint64, len(c.stems)/64+1) // one bit for each stem
	for i := range c.prepared {
		news := uint64(0)
		for _, term := range c.prepared[i].distinct {
			word, bit := &seen[term/64], term%64
			news += ^*word >> bit & 1
			*word |= 1 << bit
		}
		for _, term := range c.prepared[i].dates {
			seen[term/64] |= 1 << (term % 64)
		}
		c.prepared[i].news = logCount(int(news))
	}
}

// lookUp returns the number of a stem; -1 for one that no document has.
func (c *Corpus) lookUp(stem string) int32 {
	if term := c.vocabulary.lookUp(stem); int(term) < len(c.stems) {
		return term
	}
	return -1
}

func isSameDay(a, b time.Time) bool {
	year, month, day := a.UTC().Date()
	otherYear, otherMonth, otherDay := b.UTC().Date()
	return day == otherDay && month == otherMonth && year == otherYear && a.IsZero() == b.IsZero()
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
