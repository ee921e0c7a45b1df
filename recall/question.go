package recall

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// question is an analyzed query.
type question struct {
	terms    []int32 // stems of what it asks about, in its order, without repetitions; -1 for one that no document has
	stems    []string
	all      []int32 // stems of all its words but stop words
	dates    map[int32]bool
	speakers map[string]bool // the speakers that it names
	names    []int32         // stems of capitalized words in it
	named    int             // how many capitalized words it has
	// The form of the question, each 0 or one.
	when, count, overview, advice fixed
}

// Term is a stem that a query looks for.
type Term struct {
	Stem string
	Wide bool // characters of a script without spaces
}

// Terms returns what a query looks for, in its order, without repetitions.
func Terms(query string) []Term {
	var all, subject []Term
	known := map[string]bool{}
	for w := range words(query) {
		stem := w.stem()
		if stopWords[w.Text] || known[stem] {
			continue
		}
		known[stem] = true
		all = append(all, Term{stem, w.Wide})
		if !requestWords[w.Text] {
			subject = append(subject, Term{stem, w.Wide})
		}
	}
	if len(subject) == 0 {
		return all
	}
	return subject
}

// Rarity is the logarithm of how rare a stem is that so many of all entries have, in units of 1/65536.
func Rarity(entries, all int64) int64 {
	entries = max(0, min(entries, all))
	return ln(one + div(2*(all-entries)+1, 2*entries+1))
}

// Match is what a document has of a query.
type Match struct {
	Words []string // in the query's order
	// Weight sums the rarities of what the query asks about and the document has, in units of 1/65536; see Weigher. It grows
	// with the number of entries that were searched: a match among few entries says little.
	Weight int64
}

// Weigher sums the rarities of what a query asks about, in units of 1/65536. Stems that half of all entries have do not
// count: they belong to a form that the entries have. Nor do interjections, single letters and digits. In a script without spaces two pairs of characters
// count as a word: neighbouring pairs have a character in common.
type Weigher struct {
	places []int64          // their rarities, by the places of the stems
	stems  map[string]int64 // the same by their texts
	// Total is the sum for a text with all that some document has.
	Total int64
}

const commonShare = 2

// Weigher prepares a query.
func (c *Corpus) Weigher(query string) *Weigher {
	asked := c.inquire(query)
	w := &Weigher{places: make([]int64, len(asked.terms)), stems: map[string]int64{}}
	least := Rarity(c.total/commonShare, c.total)
	wide := map[string]bool{}
	for _, term := range Terms(query) {
		wide[term.Stem] = term.Wide
	}
	for place, rarity := range asked.rarities[:asked.subject] {
		stem := c.stems[asked.terms[place]]
		if rarity <= least || fillers[stem] || len(stem) < 2 {
			continue
		}
		if wide[stem] {
			rarity /= 2
		}
		w.places[place], w.stems[stem] = rarity, rarity
		w.Total += rarity
	}
	return w
}

// Text is the sum for a text.
func (w *Weigher) Text(text string) (sum int64) {
	found := map[string]bool{}
	for one := range words(text) {
		if stem := one.stem(); w.stems[stem] > 0 && !found[stem] {
			found[stem] = true
			sum += w.stems[stem]
		}
	}
	return sum
}

// Matches returns what each document has of a query.
func (c *Corpus) Matches(query string) []Match {
	asked, weigher := c.inquire(query), c.Weigher(query)
	words := c.wordsOf(query, asked)
	found := make([]Match, len(c.documents))
	has := make([]int32, len(asked.terms)) // the last document that has a stem, from 1
	hits := asked.hits
	for i := range found {
		document := int32(i + 1)
		for ; len(hits) > 0 && hits[0].document < document; hits = hits[1:] {
			has[hits[0].term] = document
			found[i].Weight += weigher.places[hits[0].term]
		}
		for _, word := range words {
			if has[word.place] == document || slices.Contains(c.prepared[i].dates, asked.terms[word.place]) {
				found[i].Words = append(found[i].Words, word.text)
			}
		}
	}
	return found
}

// queryWord is a word of a query, and the place of its stem.
type queryWord struct {
	text  string
	place int
}

// wordsOf returns the words of a query that documents may have.
func (c *Corpus) wordsOf(query string, asked *inquiry) (found []queryWord) {
	known := map[string]bool{}
	for w := range words(query) {
		if stopWords[w.Text] || known[w.Text] {
			continue
		}
		known[w.Text] = true
		if place := slices.Index(asked.terms, c.lookUp(w.stem())); place >= 0 {
			found = append(found, queryWord{w.Text, place})
		}
	}
	return found
}

// analyze reads a query.
func (c *Corpus) analyze(text string) *question {
	q := &question{dates: map[int32]bool{}, speakers: map[string]bool{}}
	var all, subject []word
	for w := range words(text) {
		if stopWords[w.Text] {
			continue
		}
		all = append(all, w)
		if !requestWords[w.Text] {
			subject = append(subject, w)
		}
	}
	if len(subject) == 0 {
		subject = all
	}
	known := map[string]bool{}
	for _, w := range subject {
		if c.speakers[w.Text] {
			q.speakers[w.Text] = true
			continue
		}
		if stem := w.stem(); !known[stem] {
			known[stem] = true
			q.stems = append(q.stems, stem)
			q.terms = append(q.terms, c.lookUp(stem))
		}
	}
	clear(known)
	for _, w := range all {
		stem := w.stem()
		if known[stem] {
			continue
		}
		known[stem] = true
		if term := c.lookUp(stem); term >= 0 {
			q.all = append(q.all, term)
			q.dates[term] = true
		}
	}
	c.findNames(q, text)
	q.classify(text)
	return q
}

// findNames finds the capitalized words after the first word that are not speakers.
func (c *Corpus) findNames(q *question, text string) {
	known := map[string]bool{}
	first := true
	for _, field := range strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’' && r != '-' && r != '_'
	}) {
		r, _ := utf8.DecodeRuneInString(field)
		begins := first
		first = false
		if begins || !unicode.IsUpper(r) {
			continue
		}
		for w := range words(field) {
			if known[w.Text] || stopWords[w.Text] || c.speakers[w.Text] || w.Text == "only" {
				break
			}
			known[w.Text] = true
			q.named++
			if term := c.lookUp(w.stem()); term >= 0 {
				q.names = append(q.names, term)
			}
			break
		}
	}
}

// The phrases by which a question shows its form, as words that are separated by one space. A phrase that ends with * also
// matches longer words.
var (
	whenPhrases = []string{
		"what date", "what day", "what month", "what year", "what time", "how long", "how many days", "how many weeks",
		"how many months", "how many years", "which month", "which year", "which day",
	}
	countPhrases = []string{
		"how many", "how much", "how often", "how long", "how old", "what percentage", "what amount", "what budget", "what score",
		"total",
	}
	overviewPhrases = []string{
		"order in which", "in order", "summar*", "over time", "throughout", "overview", "walk me through", "list the", "evolved",
		"progress", "developed",
	}
	advicePhrases = []string{
		"suggest", "recommend", "advice", "should i", "would you", "could you", "can you help", "can you show", "can you explain",
		"can you give", "can you provide", "can you tell", "can you walk", "i m planning", "i m looking", "i m about", "i m trying",
		"i m thinking", "how can i", "how do i", "how should i", "how would i", "help me",
	}
)

// classify finds the form of the question.
func (q *question) classify(text string) {
	line := lineOf(text)
	has := func(phrases []string) fixed { return flag(hasPhrase(line, phrases)) }
	q.when, q.count, q.overview, q.advice = has(whenPhrases), has(countPhrases), has(overviewPhrases), has(advicePhrases)
	if strings.HasPrefix(line, " when ") || strings.HasPrefix(line, " on what date ") {
		q.when = one
	}
}

// lineOf is a text as words that are separated by one space, with one before and after.
func lineOf(text string) string {
	var folded strings.Builder
	folded.WriteByte(' ')
	for w := range words(text) {
		folded.WriteString(w.Text)
		folded.WriteByte(' ')
	}
	return folded.String()
}

func hasPhrase(line string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool {
		longer, ok := strings.CutSuffix(phrase, "*")
		if !ok {
			longer += " "
		}
		return strings.Contains(line, " "+longer)
	})
}

const questionMarks = "?？؟"

var (
	questionWords  = setOf("what when where who whom whose which why how")
	earlierPhrases = []string{
		"remind*", "remember", "recall", "earlier", "previous*", "last time", "as before", "discussed", "mentioned", "agreed", "decided",
		"you said", "you told", "i said", "i told", "we said", "we talked",
	}
)

// Asks reports whether a text asks something, or refers to what was said before: it has a question mark, begins with a question
// word, or says so in English. Other texts need earlier entries less often.
func Asks(text string) bool {
	if strings.ContainsAny(text, questionMarks) {
		return true
	}
	line := lineOf(text)
	first, _, _ := strings.Cut(line[1:], " ")
	return questionWords[first] || hasPhrase(line, earlierPhrases)
}
