package server

// nearest returns the candidate that needs the fewest insertions, deletions and replacements to become
// text, or "" when that is more than a third of the text and more than two.
func nearest(text string, candidates []string) string {
	if len(text) > 64 {
		return ""
	}
	best, bound := "", max(2, len(text)/3)+1
	for _, candidate := range candidates {
		if distance := editDistance(text, candidate); distance < bound && distance < len(candidate) {
			best, bound = candidate, distance
		}
	}
	return best
}

// editDistance is the Levenshtein distance in bytes.
func editDistance(from, to string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			replace := diagonal
			if from[i] != to[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, diagonal+1, row[j]+1)
		}
	}
	return row[len(to)]
}

// suggestion says which name was probably meant, or which there are.
func suggestion(name string, known []string) string {
	if found := nearest(name, known); found != "" {
		return "; did you mean " + found + "?"
	}
	if len(known) == 0 {
		return "; there are none"
	}
	return "; known are " + joined(known)
}
