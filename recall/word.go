package recall

import (
	"iter"
	"strings"

	"github.com/continuo-log/continuo/fulltext"
)

// word is one word of a text, or two neighbouring characters of a script without spaces.
type word struct {
	Text string // folded
	Wide bool
	At   int // where it begins in the text, in bytes; 0 for characters of a script without spaces
}

func (w word) stem() string {
	if w.Wide {
		return w.Text
	}
	return fulltext.Stem(w.Text)
}

// words yields the words of a text.
func words(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		last, pair := "", false // the character before, and whether it was yielded in a pair
		for token := range fulltext.Tokens(text) {
			if !token.Wide {
				if last != "" && !pair && !yield(word{last, true, 0}) {
					return
				}
				last, pair = "", false
				if !yield(word{token.Text, false, token.Start}) {
					return
				}
				continue
			}
			if last != "" {
				if !yield(word{last + token.Text, true, 0}) {
					return
				}
			}
			pair, last = last != "", token.Text
		}
		if last != "" && !pair {
			yield(word{last, true, 0})
		}
	}
}

// IsSubject reports whether a folded word may be what a query asks about: it is no stop word, and none by which a question
// asks.
func IsSubject(word string) bool { return !stopWords[word] && !requestWords[word] }

func setOf(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}

// stopWords carry no subject. The single letters are what remains of contractions.
var stopWords = setOf(`a about after all also am an and any are as at be because been before being but by can could did do does doing
down during each few for from further had has have having he her here hers herself him himself his how i if in into is it its
itself just me more most my myself no nor not now of off on once only or other our ours out over own s same she should so some
such t than that the their theirs them themselves then there these they this those through to too under until up very was we
were what when where which while who whom why will with would you your yours yourself d m ll re ve don didn doesn isn wasn
weren won couldn wouldn shouldn hasn haven hadn aren ain`)

// fillers are the stems of interjections.
var fillers = func() map[string]bool {
	stems := map[string]bool{}
	for w := range setOf(`yeah yes yep no nope ok okay hm hmm hmmm oh ah well alright right sure great good nice cool perfect awesome real really lol haha
thank thanks please sorry hello hi hey damn shit fuck fucked fucking hell`) {
		stems[fulltext.Stem(w)] = true
	}
	return stems
}()

// requestWords are words by which a question asks, rather than what it asks about.
var requestWords = setOf(`can could would please tell give list mention only throughout conversations conversation items item order
brought different aspects aspect walk summarize summary summarise provide comprehensive overview detailed many much likely kind type sort
name describe explain discuss discussed talked across chats chat sessions clear complete full ever various based think considering
seem seems need help want way ways something anything suggest`)
