package memory

import (
	"slices"
	"strings"
	"unicode"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/lazy"
)

// wordsOf splits a text into lower-case words and numbers.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(text, "’", "'")), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '%' && r != '$'
	})
}

// sameWords reports whether two texts differ in nothing but case, spaces and punctuation.
func sameWords(a, b string) bool { return slices.Equal(wordsOf(a), wordsOf(b)) }

// functionWords say nothing about a topic.
var functionWords = setOf(`a an the and or but if so as at by for from in into of off on onto out over to up with about after again
all also am any are aren't be because been before being both can can't could did didn't do does doesn't doing don't down during each
few had has have haven't having he her here hers him his how i i'd i'll i'm i've is isn't it it's its just let's like me more most my myself
no nor not now only other our ours really she should some such than that that's the their them then there these they this those
through too under until us very was wasn't we we'd we'll we're we've were what when where which while who whom why will would you
your yours never ever actually before currently recently already still always usually sure trying need want using used use help get got`)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// contentWords lists the roots of the words of a text that say something about its topic, without numbers, each once.
func contentWords(text string) (roots []string) {
	for _, word := range wordsOf(text) {
		if functionWords[word] || strings.ContainsFunc(word, unicode.IsDigit) {
			continue
		}
		if r := root(word); len(r) > 1 && !slices.Contains(roots, r) {
			roots = append(roots, r)
		}
	}
	return roots
}

// root strips the endings of inflection, roughly: it only has to map forms of one word to one text.
func root(word string) string {
	word = strings.TrimSuffix(strings.Trim(word, "'"), "'s")
	for _, ending := range []string{"ments", "ment", "ations", "ation", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "e"} {
		if short := strings.TrimSuffix(word, ending); len(short) >= 3 && short != word {
			if last := len(short) - 1; short[last] == short[last-1] && len(short) > 3 && short[last] != 'l' && short[last] != 's' {
				short = short[:last] // running, stopped
			}
			return strings.TrimSuffix(short, "y")
		}
	}
	return strings.TrimSuffix(word, "y")
}

var numbers = lazy.Regexp(`[0-9][0-9.,:]*`)

// figures lists the numbers of a text.
func figures(text string) (found []string) {
	for _, number := range numbers().FindAllString(text, -1) {
		found = append(found, strings.TrimRight(number, ".,:"))
	}
	return found
}

var denial = lazy.Regexp(`(?i)\b(i|we)('ve| have)? never\b|\bi (haven't|have not|didn't|did not) (ever )?\w|\bnever (actually |really )?(\w+ed|been|done|met|had|made|written|used)\b`)

// isDenial reports whether a text says that something never happened.
func isDenial(text string) bool { return denial().MatchString(strings.ReplaceAll(text, "’", "'")) }

// Relates reports whether a fact may have to do with a text: they have a word in common, or it is a standing instruction.
func Relates(text string, k *Known) bool {
	if k.Kind == continuo.FactInstruction {
		return true
	}
	content := contentWords(k.Text + " " + k.Subject)
	return slices.ContainsFunc(contentWords(text), func(word string) bool { return slices.Contains(content, word) })
}

// retold are words that a text may have of its own: who says something, and that it is said.
var retold = setOfRoots(`user person someone says said states stated asks asked decided decides chose chooses prefers likes dislikes loves hates
wants plans lives works named called name owns knows believes works interested instruction preference`)

func setOfRoots(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[root(word)] = true
	}
	return set
}

var negation = lazy.Regexp(`(?i)\b(?:not|no|never|none|nothing|without|nor|cannot|\w+n't)\b`)

// Supports reports whether a source says what a text says, as far as words show it: each word of the text's topic and each of its
// figures is in the source, and the text denies nothing where the source denies nothing.
func Supports(source, text string) bool {
	words, said := contentWords(source), figures(source)
	for _, word := range contentWords(text) {
		if !retold[word] && !slices.Contains(words, word) {
			return false
		}
	}
	for _, figure := range figures(text) {
		if !slices.Contains(said, figure) {
			return false
		}
	}
	plain := func(s string) string { return strings.ReplaceAll(s, "’", "'") }
	return negation().MatchString(plain(source)) || !negation().MatchString(plain(text))
}
