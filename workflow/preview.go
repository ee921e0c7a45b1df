package workflow

import (
	"fmt"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// The bounds of the inputs and of earlier steps' outputs in a step's requests, in Unicode characters. One value is
// shown whole up to maxFullValue; all of them together have at most maxFullContext, or, where there are many of them,
// previews of the smallest size.
const (
	maxFullValue    = 8000
	maxFullContext  = 32_000
	previewValue    = 1200
	smallestPreview = 300
)

// shorten replaces values that are too large by previews. The same values give the same previews.
func shorten(lists ...[]namedValue) {
	limit := maxFullValue
	for limit > smallestPreview && sizeAt(limit, lists) > maxFullContext {
		limit /= 2
	}
	for _, list := range lists {
		for i := range list {
			list[i].Value = list[i].at(limit)
		}
	}
}

func sizeAt(limit int, lists [][]namedValue) (chars int) {
	for _, list := range lists {
		for _, value := range list {
			chars += utf8.RuneCountInString(value.at(limit))
		}
	}
	return chars
}

// at is the whole value if it has at most so many characters, else its head and tail. A preview is never larger than
// the value.
func (v namedValue) at(limit int) string {
	runes := []rune(v.Value)
	if len(runes) <= limit {
		return v.Value
	}
	shown := min(previewValue, max(limit/2, smallestPreview))
	head, tail := shown*2/3, shown/3
	if len(runes) <= shown {
		return v.Value
	}
	preview := fmt.Sprintf("(%d characters; head and tail are shown)\n  %s\n  [... %d characters left out ...]\n  %s",
		len(runes), string(runes[:head]), len(runes)-head-tail, string(runes[len(runes)-tail:]))
	if v.full != "" {
		preview += "\n  Full output: " + v.full
	}
	if utf8.RuneCountInString(preview) >= len(runes) {
		return v.Value
	}
	return preview
}

// sources names where the values in an expression can be read whole.
func (s *State) sources(e *Expression) string {
	if len(e.nodes) == 0 {
		return continuo.InputsRef(s.RunID)
	}
	var refs []string
	for _, node := range e.nodes {
		refs = append(refs, continuo.StepRef(s.RunID, node))
	}
	return strings.Join(refs, ", ")
}
