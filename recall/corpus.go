package recall

import (
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

// Corpus is a list of documents, prepared for queries.
type Corpus struct {
	documents []Document
	prepared  []prepared
	words     map[string]known // of the texts
	terms     map[string]int32 // numbers of stems
	names     []string         // stems by number
	counts    []int32          // documents of the list with a stem
	prefixes  map[string][]int32
	speakers  map[string]bool
	named     bool // some document names its speaker
	average   fixed
	total     int64 // documents of the collection
	counted   map[string]int64
	sessions  []int32
}

// known is what is known of a word.
type known struct {
	term   int32 // the number of its stem; -1 for a stop word
	ends   bool  // a phrase of signals ends with it
	number bool
}

// prepared is what is known of a document before there is a query.
type prepared struct {
	terms    []int32 // stems without stop words, in the order of the text
	dates    []int32
	question bool // it ends with a question
	number   bool
	fulltext.Signals
	logCost fixed
}

// NewCorpus prepares documents.
func NewCorpus(statistics Statistics, documents []Document) *Corpus {
	c := &Corpus{
		documents: documents, prepared: make([]prepared, len(documents)), terms: map[string]int32{}, words: map[string]known{},
		prefixes: map[string][]int32{}, speakers: map[string]bool{}, counted: statistics.Counts,
		total: max(statistics.Documents, int64(len(documents))),
	}
	var length int
	var marks []int32 // the last document that has a stem, from 1
	for i := range documents {
		d := &documents[i]
		if d.Speaker != "" {
			c.named = true
			for token := range fulltext.Tokens(d.Speaker) {
				c.speakers[token.Text] = true
			}
		}
		c.prepare(d, &c.prepared[i])
		length += len(c.prepared[i].terms)
		for len(marks) < len(c.names) {
			marks, c.counts = append(marks, 0), append(c.counts, 0)
		}
		for _, term := range c.prepared[i].terms {
			if marks[term] != int32(i+1) {
				marks[term] = int32(i + 1)
				c.counts[term]++
			}
		}
	}
	for len(c.counts) < len(c.names) {
		c.counts = append(c.counts, 0)
	}
	c.average = max(one, div(fixed(length), fixed(max(1, len(documents)))))
	c.divide()
	return c
}

// longQuestion is how many bytes at the end of a text are searched for a question mark.
const longQuestion = 200

func (c *Corpus) prepare(d *Document, p *prepared) {
	scan := fulltext.SignalScanner{}
	for w := range words(d.Text) {
		k := c.word(w)
		scan.Word(w.Text, k.ends)
		p.number = p.number || k.number
		if k.term >= 0 {
			p.terms = append(p.terms, k.term)
		}
	}
	p.Signals = scan.Signals
	p.question = strings.Contains(d.Text[max(0, len(d.Text)-longQuestion):], "?")
	for _, word := range dateWords(d.At) {
		p.dates = append(p.dates, c.number(word))
	}
	p.logCost = ln(fixed(10+d.Tokens)<<16) - 4*one
}

// word looks a word up; each is analyzed once.
func (c *Corpus) word(w word) known {
	k, ok := c.words[w.Text]
	if ok {
		return k
	}
	k = known{term: -1, ends: fulltext.EndsSignal(w.Text), number: strings.ContainsAny(w.Text, "0123456789")}
	if !stopWords[w.Text] {
		k.term = c.number(w.stem())
	}
	c.words[strings.Clone(w.Text)] = k
	return k
}

// number returns the number of a stem.
func (c *Corpus) number(stem string) int32 {
	if n, ok := c.terms[stem]; ok {
		return n
	}
	n := int32(len(c.names))
	stem = strings.Clone(stem)
	c.terms[stem] = n
	c.names = append(c.names, stem)
	if len(stem) >= softPrefix {
		c.prefixes[stem[:softPrefix]] = append(c.prefixes[stem[:softPrefix]], n)
	}
	return n
}

// softPrefix is how many bytes two stems have in common that count as related.
const softPrefix = 5

// dateWords are the words by which a question names a day.
func dateWords(at time.Time) []string {
	if at.IsZero() {
		return nil
	}
	year, month, day := at.UTC().Date()
	return []string{
		fulltext.Stem(strings.ToLower(month.String())), strconv.Itoa(day), strconv.Itoa(year),
	}
}

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
	if count, ok := c.counted[c.names[term]]; ok {
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
