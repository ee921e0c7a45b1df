package task

import (
	"container/heap"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/fulltext"
)

// Sentences are chosen to cover words: each word has a weight, a sentence is worth the sum of the weights of its words,
// and a word of a chosen sentence is worth little from then on. The next sentence is always the one that adds most for
// its length.

// Weights of words, by what they are.
const (
	numberWeight  = 4.0 // has a digit: amounts, dates, versions, identifiers
	nameWeight    = 3.0 // begins with a capital within a sentence
	topicWeight   = 1.5 // used more than once, but not everywhere
	otherWeight   = 1.0
	commonWeight  = 0.05 // in every tenth sentence or more often, or of one or two characters
	coveredFactor = 0.1  // the fraction of a word's weight that remains once a chosen sentence has it
)

// Factors and bonuses of sentences.
const (
	userFactor     = 2.0
	questionFactor = 0.4
	politeFactor   = 0.2
	decisionBonus  = 4.0 // "we decided", and half of it for "must", "never", "prefer"
	negationBonus  = 1.5
	// overheadChars is added to a sentence's length, so that fragments of one or two words are not preferred.
	overheadChars = 30
)

// decisionWords are words that every decision has one of, and negations: looking them up is cheaper than the
// expressions of weightOf.
var decisionWords, negations = wordTable(`decided decision decide agreed agree settled will ll we'll let let's lets chose chosen approved rejected ruled
	must shall have has needs required never always instead prefer`), wordTable(`not never no none without cannot t don't isn't doesn't didn't won't can't
	aren't wasn't weren't shouldn't couldn't wouldn't haven't hasn't hadn't`)

func wordTable(words string) map[string]bool {
	table := map[string]bool{}
	for _, word := range strings.Fields(words) {
		table[word] = true
	}
	return table
}

func hasAny(words []string, table map[string]bool) bool {
	return slices.ContainsFunc(words, func(word string) bool { return table[word] })
}

// candidate is a sentence that may be chosen.
type candidate struct {
	index  int
	chars  int
	words  []string // distinct
	bonus  float64
	factor float64
	worth  float64 // per length, as last computed
	at     int     // how many sentences were chosen then
}

// choose chooses the important sentences, up to a number of characters.
func choose(sentences []sentence, limit int) {
	queue, weights := candidatesOf(sentences)
	covered := map[string]bool{}
	left := limit
	taken := 0
	take := func(c *candidate) {
		sentences[c.index].taken = true
		left -= c.chars + utf8.RuneCountInString(ellipsis)
		taken++
		for _, word := range c.words {
			covered[word] = true
		}
	}
	take(queue[0]) // the first sentence
	queue = queue[1:]
	for _, c := range queue {
		c.rate(weights, covered, taken)
	}
	heap.Init(&queue)
	for queue.Len() > 0 {
		c := queue[0]
		switch {
		case c.chars > left:
			heap.Pop(&queue)
		case c.at != taken: // the chosen sentences have reduced its worth
			c.rate(weights, covered, taken)
			heap.Fix(&queue, 0)
		default:
			heap.Pop(&queue)
			take(c)
		}
	}
}

// candidatesOf makes candidates of sentences, of identical ones the first, and weights the words.
func candidatesOf(sentences []sentence) (candidates, map[string]float64) {
	all := make(candidates, 0, len(sentences))
	in := map[string]int{} // how many sentences contain a word
	names, seen := map[string]bool{}, map[string]*candidate{}
	for i := range sentences {
		one := &sentences[i]
		if first := seen[one.text]; first != nil {
			for _, word := range first.words {
				in[word]++
			}
			continue
		}
		c := &candidate{index: i, chars: utf8.RuneCountInString(one.text), words: distinct(wordsOf(one.text)), factor: 1}
		if one.user {
			c.factor = userFactor
		}
		if isPolite(one.text) {
			c.factor *= politeFactor
		}
		if isQuestion(one.text) {
			c.factor *= questionFactor
		} else {
			if hasAny(c.words, decisionWords) {
				c.bonus = decisionBonus / 2 * float64(weightOf(one.text))
			}
			if hasAny(c.words, negations) {
				c.bonus += negationBonus
			}
		}
		for _, word := range c.words {
			in[word]++
		}
		findNames(one.text, names)
		all = append(all, c)
		seen[one.text] = c
	}
	weights := make(map[string]float64, len(in))
	for word, n := range in {
		weights[word] = weigh(word, n, len(sentences), names[word])
	}
	return all, weights
}

func weigh(word string, n, sentences int, name bool) float64 {
	common := n > 2 && n*10 >= sentences
	switch {
	case strings.ContainsFunc(word, unicode.IsDigit):
		return numberWeight
	case common, utf8.RuneCountInString(word) <= 2 && word[0] < utf8.RuneSelf:
		return commonWeight
	case name:
		return nameWeight
	case n > 1:
		return topicWeight
	}
	return otherWeight
}

// findNames adds the capitalized words that do not begin a sentence or follow a speaker's name.
func findNames(text string, names map[string]bool) {
	for token := range fulltext.Tokens(text) {
		before := strings.TrimRight(text[:token.Start], " \"'“‘(*_-")
		if before == "" || strings.ContainsRune(".!?:", rune(before[len(before)-1])) {
			continue
		}
		if first, _ := utf8.DecodeRuneInString(text[token.Start:]); unicode.IsUpper(first) {
			names[token.Text] = true
		}
	}
}

// courtesies begin sentences without content.
var courtesies = []string{
	"thank", "i hope", "hope ", "sure", "great", "of course", "let me know", "please let me know", "you're welcome", "happy to", "glad to",
	"feel free", "no problem", "sounds good", "hello", "hi ", "hi!", "good morning", "have a ", "i'm here to", "i'd be happy",
}

func isPolite(text string) bool {
	head := strings.ToLower(firstBytes(strings.TrimPrefix(strings.TrimPrefix(text, "User: "), "Assistant: "), 24))
	return slices.ContainsFunc(courtesies, func(one string) bool { return strings.HasPrefix(head, one) })
}

func isQuestion(text string) bool {
	end, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, `"')]}”’»* `))
	return end == '?' || end == '？'
}

// rate computes what a sentence adds to the chosen ones for its length.
func (c *candidate) rate(weights map[string]float64, covered map[string]bool, taken int) {
	sum, fresh := 0.0, 0.0
	for _, word := range c.words { // in order, so that the sum is deterministic
		weight := weights[word]
		if covered[word] {
			sum += weight * coveredFactor
			continue
		}
		sum += weight
		fresh += weight
	}
	if sum > 0 {
		sum += c.bonus * fresh / (fresh + 2) // a repeated rule adds nothing
	}
	c.worth = rounded(c.factor * sum / math.Pow(float64(c.chars+overheadChars), 0.9))
	c.at = taken
}

// candidates is a heap: the best first, and of equals the earlier.
type candidates []*candidate

func (q candidates) Len() int { return len(q) }

func (q candidates) Less(i, j int) bool {
	return q[i].worth > q[j].worth || q[i].worth == q[j].worth && q[i].index < q[j].index
}

func (q candidates) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is part of heap.Interface; nothing is added.
func (q *candidates) Push(any) {}

// Pop is part of heap.Interface.
func (q *candidates) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
