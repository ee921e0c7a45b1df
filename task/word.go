package task

import (
	"math"
	"slices"

	"github.com/continuo-log/continuo/fulltext"
)

// rounded removes the digits in which processors differ, so that the same messages are kept everywhere.
func rounded(score float64) float64 { return math.Round(score*1e9) / 1e9 }

// wordsOf returns the words of a text. A run of characters of a script without spaces gives its pairs of neighbours, as
// one character means little; a single character is a word.
func wordsOf(text string) []string {
	var words []string
	var before fulltext.Token
	paired := true
	end := func() {
		if !paired {
			words = append(words, before.Text)
		}
		paired = true
	}
	for token := range fulltext.Tokens(text) {
		joined := before.Wide && token.Wide && before.End == token.Start
		switch {
		case joined:
			words = append(words, before.Text+token.Text)
		case !token.Wide:
			end()
			words = append(words, token.Text)
		default:
			end()
		}
		before, paired = token, !token.Wide || joined
	}
	end()
	return words
}

// distinct sorts words and removes duplicates.
func distinct(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}
