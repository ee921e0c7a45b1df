package memory

import (
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/lazy"
)

// The bounds of what the rules read of one message: its beginning and its end. What is longer was mostly pasted.
const (
	maxHead      = 3000
	maxTail      = 1000
	maxSentence  = 400 // characters; a longer one is not one statement
	minStatement = 8   // characters
)

// code matches fenced code, which nobody says, and quoted lines, which somebody else said.
var code = lazy.Regexp("(?s)```.*?(```|$)|(?m)^[ \\t]*>.*$")

// sentences splits what a message says into sentences, each a substring of the message. Code, quotations and the middle
// of a long message are left out.
func sentences(text string) (found []string) {
	for _, said := range code().Split(text, -1) {
		if len(said) > maxHead+maxTail {
			tail := said[runeStart(said, len(said)-maxTail):]
			found = append(found, split(said[:runeStart(said, maxHead)])...)
			found = append(found, split(tail)...)
			continue
		}
		found = append(found, split(said)...)
	}
	return found
}

// runeStart moves an offset back to the beginning of a character.
func runeStart(text string, at int) int {
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// split splits at line breaks, and after a full stop, an exclamation or question mark that ends a word.
func split(text string) (found []string) {
	begin := 0
	end := func(at int) {
		if sentence := strings.TrimSpace(text[begin:at]); sentence != "" && utf8.RuneCountInString(sentence) <= maxSentence {
			found = append(found, sentence)
		}
		begin = at
	}
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c == '\n':
			end(at)
		case (c == '.' || c == '!' || c == '?') && (at+1 == len(text) || text[at+1] == ' ' || text[at+1] == '\n') && !isAbbreviation(text[begin:at]):
			end(at + 1)
		}
	}
	end(len(text))
	return found
}

var abbreviation = lazy.Regexp(`(?i)(^|[ (])(mr|mrs|ms|dr|st|e\.g|i\.e|etc|vs|no|[A-Z])$`)

func isAbbreviation(before string) bool { return abbreviation().MatchString(before) }

// A statement ends where a request begins.
var request = lazy.Regexp(`(?i)(,|;|\s[-–—]|:)?\s*((and|but|so|or)\s+)?((so|and|but)\s+)?(can|could|would|will|do|should|shall) (you|we|i)\b|(,|;|\s[-–—])\s*((and|but|so)\s+)?(i'm|i am|i was) (not sure|unsure|wondering|curious|looking for (advice|help))\b|(,|;|\s[-–—])\s*((and|but|so)\s+)?(i|we)('d| would) (like|love|appreciate)\b|(,|;|\s[-–—])\s*((and|but|so)\s+)?(what|how|which|where|when|why|who|any (tips|ideas|advice)|please)\b|(,|;|\s[-–—])\s*((and|but|so)\s+)?i (want to make sure|need (help|advice|to know)|don't know)\b`)

// clause returns the range of a sentence from an offset to where a request begins, without punctuation at its end.
func clause(sentence string, from int) (begin, end int) {
	rest := sentence[from:]
	if cut := request().FindStringIndex(rest); cut != nil {
		rest = rest[:cut[0]]
	}
	begin = from + len(rest) - len(strings.TrimLeft(rest, " "))
	return begin, max(begin, from+len(strings.TrimRight(rest, " ,;:-–—.!")))
}
