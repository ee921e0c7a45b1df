package memory

import (
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/lazy"
)

// joint matches what stands between two statements of one sentence: a conjunction or a comma before the subject of the
// second one. "My dog" is a subject only where a verb follows soon: it may be another object of the first.
var joint = lazy.Regexp(`(?i)(?:[,;] *(?:and |but |so |yet |then |also )*| (?:and|but|so|yet) (?:then |also |now )?| [-–—] *)((?:i|we|i'm|we're|i've|we've|i'll|we'll)\b|(?:my|our) (?:\p{L}[\p{L}'-]* ){1,4}?(?:is|are|was|were|has|have|lives?|works?|likes?|loves?|prefers?)\b|(?:please |always |never )(?:always |never )?[a-z]+\b)`)

// supposes matches a clause after which nothing in its sentence is stated as true.
var supposes = lazy.Regexp(`(?i)\b(?:if|suppose|imagine|assume|pretend|unless|wish|whether|hope|hoping)\b`)

// span is a range of a sentence.
type span struct{ from, to int }

// statements finds what a sentence states: one statement for each of its clauses that the rules know. What follows such a
// clause and is none itself belongs to it.
func statements(sentence string) (found []Candidate) {
	plain, offsets := plainApostrophes(sentence)
	if !isPossible(strings.ToLower(plain)) || strings.HasSuffix(plain, "?") && !asksAfterStatement(plain) {
		return nil
	}
	current := span{}
	var held *Candidate // the statement of current
	take := func(to int) {
		if one, ok := statement(sentence, plain, offsets, span{current.from, to}); ok {
			held = &one
		}
		if held != nil {
			found = append(found, *held)
		}
	}
	var cuts [][]int
	if strings.ContainsAny(plain, ",;–—") || strings.Contains(plain, " - ") || strings.Contains(plain, " and ") || strings.Contains(plain, " but ") || strings.Contains(plain, " so ") || strings.Contains(plain, " yet ") {
		cuts = joint().FindAllStringSubmatchIndex(plain, -1)
	}
	cuts = append(cuts, []int{len(plain), len(plain), len(plain), len(plain)})
	for i := range len(cuts) - 1 {
		if supposes().MatchString(plain[current.from:cuts[i][0]]) {
			break
		}
		if one, ok := statement(sentence, plain, offsets, span{current.from, cuts[i][0]}); ok {
			held = &one
		}
		if held == nil {
			continue
		}
		if _, ok := statement(sentence, plain, offsets, span{cuts[i][2], cuts[i+1][0]}); ok {
			take(cuts[i][0])
			current, held = span{from: cuts[i][2]}, nil
		}
	}
	take(len(plain))
	if len(found) > 0 && reported().MatchString(plain) {
		return nil
	}
	return found
}

// isPossible reports whether a sentence, in lower case, has a word of one of the rules.
func isPossible(lower string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.isPossible(lower) })
}
