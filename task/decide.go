package task

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDecision is the most characters of a decision.
const maxDecision = 300

// The expressions that identify a decision: those that state one, and those that may.
var (
	surelyDecides = regexp.MustCompile(`(?i)\b(decided|decision|decide to|agreed|we agree|settled on|we will|we'll|we’ll|let's (go with|use)|let’s (go with|use)|chose|chosen|approved|rejected|ruled out)\b`)
	maybeDecides  = regexp.MustCompile(`(?i)\b(must|must not|shall|have to|has to|needs to|required|never|always|instead of|prefer)\b`)
)

// Decisions picks the sentences of a text that state a decision: at most so many, in their order, explicit decisions
// before possible ones, and of these the last. Questions are not decisions. The result is deterministic.
func Decisions(text string, most int) []string {
	type found struct {
		at, weight int
		text       string
	}
	var all []found
	seen := map[string]bool{}
	for at, one := range sentencesOf(ends(text)) {
		weight := weightOf(one.text)
		if weight == 0 || seen[one.text] {
			continue
		}
		seen[one.text] = true
		all = append(all, found{at, weight, one.text})
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.at, a.at)) })
	all = all[:min(len(all), max(most, 0))]
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	var decisions []string
	for _, one := range all {
		if utf8.RuneCountInString(one.text) > maxDecision {
			one.text = firstWords(one.text, maxDecision)
		}
		decisions = append(decisions, one.text)
	}
	return decisions
}

// weightOf rates how likely a sentence states a decision; 0 for not at all.
func weightOf(sentence string) int {
	switch {
	case strings.HasSuffix(strings.TrimRight(sentence, `"')]}”’»`), "?"):
		return 0
	case surelyDecides.MatchString(sentence):
		return 2
	case maybeDecides.MatchString(sentence):
		return 1
	}
	return 0
}
