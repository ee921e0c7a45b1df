package task

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Summarizer shortens a text to the important content, in at most so many characters. It must be safe for concurrent
// use. A longer result is truncated.
type Summarizer interface {
	Summarize(ctx context.Context, text string, most int) (string, error)
}

// Extractive summarizes without a model: it extracts the important sentences, in their order, with … between those that
// were apart. The first sentence is the most important. Then come those that add most for their length: numbers and
// dates, names, words that the text uses more than once but not everywhere, and decisions, rules and negations. Words
// of extracted sentences count little from then on, so that repeats and boilerplate are left out; lines of the user
// ("User: …") count more than others, questions and courtesies less. The result is deterministic. It never fails.
type Extractive struct{}

// Summarize implements Summarizer.
func (Extractive) Summarize(_ context.Context, text string, most int) (string, error) {
	return extract(text, most), nil
}

const (
	// maxExtracted is how many bytes of a text's beginning, and of its end, are considered.
	maxExtracted = 128 << 10
	ellipsis     = " … "
)

func extract(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	sentences := sentencesOf(ends(text))
	if len(sentences) == 0 || most <= 0 {
		return ""
	}
	if utf8.RuneCountInString(sentences[0].text) > most {
		return firstWords(sentences[0].text, most)
	}
	choose(sentences, most)
	return join(sentences)
}

// ends is a text without its middle if it is very long.
func ends(text string) string {
	if len(text) <= 2*maxExtracted {
		return text
	}
	head, tail := maxExtracted, len(text)-maxExtracted
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + "\n" + text[tail:]
}

// sentence is a sentence of a text, or a line that ends without one.
type sentence struct {
	text  string
	line  int  // the number of its line
	user  bool // in a line of the user's
	taken bool
}

// sentencesOf splits a text into sentences, each on one line. A point ends one if white space follows.
func sentencesOf(text string) []sentence {
	var found []sentence
	line, user := 0, false
	add := func(text string) {
		if text = strings.Join(strings.Fields(text), " "); strings.ContainsFunc(text, isWordRune) {
			user = strings.HasPrefix(text, "User: ") || user && len(found) > 0 && found[len(found)-1].line == line
			found = append(found, sentence{text: text, line: line, user: user})
		}
	}
	begin, ending := 0, false
	for at, r := range text {
		switch {
		case isLineEnd(r), ending && unicode.IsSpace(r):
			add(text[begin:at])
			begin, ending = at, false
			if isLineEnd(r) {
				line++
			}
		case strings.ContainsRune("。！？", r):
			add(text[begin : at+utf8.RuneLen(r)])
			begin, ending = at+utf8.RuneLen(r), false
		case strings.ContainsRune(".!?…", r):
			ending = true
		case !strings.ContainsRune(`"')]}”’»`, r):
			ending = false
		}
	}
	add(text[begin:])
	return found
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// join writes the chosen sentences.
func join(sentences []sentence) string {
	var b strings.Builder
	before := -1
	for i, one := range sentences {
		if !one.taken {
			continue
		}
		switch {
		case before == i-1 && before >= 0:
			b.WriteString(" ")
		case before >= 0:
			b.WriteString(ellipsis)
		}
		b.WriteString(one.text)
		before = i
	}
	return b.String()
}

// firstWords is the beginning of a text with an ellipsis, cut between words where that costs little.
func firstWords(text string, most int) string {
	cut := firstChars(text, most-1)
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ") + "…"
}
