package recall

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/internal/pressure"
)

// Analyzer prepares documents for queries, and remembers what their texts consist of, so that a text that is ranked again is
// not read again. It changes no result. It holds some 32 MB at most, or 1/32 of the process's memory limit (GOMEMLIMIT),
// and forgets everything when it has more, or when the process is near its limit. It is safe for concurrent use; the zero
// value is ready.
type Analyzer struct {
	mu    sync.Mutex
	known *vocabulary
	cycle uint64 // of the pressure that it last looked at
}

const (
	analyzerBytes = 32 << 20
	analyzerShare = 32
)

// vocabulary returns what is remembered.
func (a *Analyzer) vocabulary() *vocabulary {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := pressure.Read()
	isNew := now.Cycle != a.cycle
	a.cycle = now.Cycle
	if a.known == nil || a.known.size() > pressure.Bound(analyzerBytes, analyzerShare) || isNew && now.IsHigh() {
		a.known = newVocabulary()
		a.known.forms = map[textKey]*form{}
	}
	return a.known
}

// vocabulary numbers stems. It only grows.
type vocabulary struct {
	mu       sync.Mutex
	words    map[string]known
	terms    map[string]int32 // numbers of stems
	stems    []string         // by number
	prefixes map[string]int32 // numbers of the beginnings of stems, from 1
	related  [][]int32        // by the number of a beginning: the stems that have it
	forms    map[textKey]*form
	bytes    int64
	text     int64        // how many texts were analyzed
	seen     []occurrence // by the number of a stem: in which text it occurred last
	// What the form of the text before was made in.
	distinct, times, order []int32
	lists                  sync.Pool // of *termList, without stems
}

// occurrence is a stem's number among those of a text.
type occurrence struct {
	in     int64
	number int32
}

// known is what is known of a word.
type known struct {
	term    int32 // the number of its stem; -1 for a stop word
	ends    bool  // a phrase of signals ends with it
	number  bool
	isFirst bool // of the first person
}

// form is what is known of a text.
type form struct {
	distinct []int32 // stems without stop words, in the order in which they occur first
	times    []int32 // how often each occurs
	order    []int32 // numbers in distinct of all words, in the order of the text
	question bool    // it ends with a question
	// How many capitalized words it has within its sentences, how many words with digits, and how many of the first person: half
	// the logarithm of the number and 1.
	names, numbers, firsts fixed
	fulltext.Signals
}

// textKey stands for a text: two with the same hash and length are taken for the same one.
type textKey struct {
	hash   uint64
	length int
}

var textSeed = maphash.MakeSeed()

func newVocabulary() *vocabulary {
	return &vocabulary{words: map[string]known{}, terms: map[string]int32{}, prefixes: map[string]int32{}, related: make([][]int32, 1)}
}

// wordBytes and formBytes estimate the memory of a word or stem, and of a form, beside their contents.
const wordBytes, formBytes = 100, 144

func (v *vocabulary) size() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bytes
}

// form analyzes a text, if it is not remembered.
func (v *vocabulary) form(text string) *form {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.forms == nil {
		return v.analyze(text)
	}
	key := textKey{maphash.String(textSeed, text), len(text)}
	found := v.forms[key]
	if found == nil {
		found = v.analyze(text)
		v.forms[key] = found
		v.bytes += formBytes + 4*int64(cap(found.distinct)+cap(found.times)+cap(found.order))
	}
	return found
}

// longQuestion is how many bytes at the end of a text are searched for a question mark.
const longQuestion = 200

func (v *vocabulary) analyze(text string) *form {
	f := &form{question: strings.Contains(text[max(0, len(text)-longQuestion):], "?")}
	f.distinct, f.times, f.order = v.distinct[:0], v.times[:0], v.order[:0]
	scan := fulltext.SignalScanner{}
	v.text++
	names, numbers, firsts := 0, 0, 0
	for w := range words(text) {
		k := v.word(w)
		scan.Word(w.Text, k.ends)
		switch {
		case k.number:
			numbers++
		case k.isFirst:
			firsts++
		case k.term >= 0 && isNameAt(text, w.At):
			names++
		}
		if k.term < 0 {
			continue
		}
		at := &v.seen[k.term]
		if at.in != v.text {
			*at = occurrence{v.text, int32(len(f.distinct))}
			f.distinct, f.times = append(f.distinct, k.term), append(f.times, 0)
		}
		f.times[at.number]++
		f.order = append(f.order, at.number)
	}
	v.distinct, v.times, v.order = f.distinct, f.times, f.order
	f.distinct, f.times, f.order = slices.Clone(f.distinct), slices.Clone(f.times), slices.Clone(f.order)
	f.Signals = scan.Signals
	f.names, f.numbers, f.firsts = logCount(names), logCount(numbers), logCount(firsts)
	return f
}

// logCount is half the logarithm of a number and 1.
func logCount(n int) fixed { return ln(fixed(1+n)<<16) / 2 }

var firstPerson = setOf("i my me mine myself we our us ours")

// sentenceMarks are the characters after which a capital letter names nothing: they end sentences, or begin headings, items and
// quotations.
const sentenceMarks = ".!?\n:*\"-#|"

// isNameAt reports whether a word begins with a capital letter, and no sentence begins with it.
func isNameAt(text string, at int) bool {
	if r, _ := utf8.DecodeRuneInString(text[at:]); !unicode.IsUpper(r) {
		return false
	}
	before := strings.TrimRight(text[:at], " ")
	return before != "" && strings.IndexByte(sentenceMarks, before[len(before)-1]) < 0
}

// word looks a word up; each is analyzed once.
func (v *vocabulary) word(w word) known {
	k, ok := v.words[w.Text]
	if ok {
		return k
	}
	k = known{term: -1, ends: fulltext.EndsSignal(w.Text), number: strings.ContainsAny(w.Text, "0123456789"), isFirst: firstPerson[w.Text]}
	if !stopWords[w.Text] {
		k.term = v.number(w.stem())
	}
	v.words[strings.Clone(w.Text)] = k
	v.bytes += wordBytes + int64(len(w.Text))
	return k
}

// softPrefix is how many bytes two stems have in common that count as related.
const softPrefix = 5

// number returns the number of a stem.
func (v *vocabulary) number(text string) int32 {
	if n, ok := v.terms[text]; ok {
		return n
	}
	n := int32(len(v.stems))
	added := strings.Clone(text)
	v.terms[added] = n
	if len(added) >= softPrefix {
		v.relate(added[:softPrefix], n)
	}
	v.stems, v.seen = append(v.stems, added), append(v.seen, occurrence{})
	v.bytes += 2*wordBytes + int64(len(text))
	return n
}

// relate notes that a stem has a beginning.
func (v *vocabulary) relate(begin string, term int32) {
	prefix, ok := v.prefixes[begin]
	if !ok {
		prefix = int32(len(v.related))
		v.prefixes[begin], v.related = prefix, append(v.related, nil)
	}
	v.related[prefix] = append(v.related[prefix], term)
}

// lookUp returns the number of a stem; -1 where no text has it.
func (v *vocabulary) lookUp(text string) int32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if n, ok := v.terms[text]; ok {
		return n
	}
	return -1
}

// relatives returns the stems that begin as a stem does, with itself.
func (v *vocabulary) relatives(text string) []int32 {
	if len(text) < softPrefix {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.related[v.prefixes[text[:softPrefix]]]
}
