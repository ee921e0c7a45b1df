// Package nearest finds the name that was probably meant, for error messages.
package nearest

import (
	"slices"
	"strings"
)

// Name returns the candidate with the smallest edit distance to text, ignoring case, or "" if none is near enough: at
// most 2 edits, or a third of the text's length; one edit for texts of up to 5 letters.
func Name(text string, candidates []string) string {
	allowed := 1
	if len(text) > 5 {
		allowed = max(2, len(text)/3)
	}
	best, bound := "", allowed+1
	for _, candidate := range candidates {
		if distance := editDistance(text, candidate, bound); distance < bound && distance < len(candidate) {
			best, bound = candidate, distance
		}
	}
	return best
}

// maxSuggest is the longest text, in bytes, for which suggestions are made.
const maxSuggest = 100

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that turn a into b, ignoring case
// (the optimal string alignment distance). Texts that are too long are far apart, and of a distance of bound or more it is
// only known that it is no less.
func editDistance(a, b string, bound int) int {
	if len(a) > maxSuggest || len(b) > maxSuggest {
		return maxSuggest
	}
	from, to := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	if max(len(from)-len(to), len(to)-len(from)) >= bound {
		return maxSuggest
	}
	var before, last []int // the rows for i-2 and i-1 letters of from
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range from {
		if i > 1 && min(slices.Min(last), slices.Min(row)) >= bound {
			return maxSuggest
		}
		before, last, row = last, row, make([]int, len(to)+1)
		row[0] = i + 1
		for j := range to {
			replace := last[j]
			if from[i] != to[j] {
				replace++
			}
			row[j+1] = min(replace, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(to)]
}
