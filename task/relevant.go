package task

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/continuo-log/continuo/fulltext"
)

// Relevant drops the messages that have little to do with a task's description and keeps the others in order. gaps are
// where messages were dropped.
//
// Each message has a score from 0 to 1: how well its words match those of the description (BM25: rare words count more,
// long messages less), as a share of the best message's. An answer often repeats nothing of its question, so a message
// has at least half the score of its neighbours. Messages below the cut-off are dropped; 0 keeps all, 1 only the best.
// With most above 0 at most that many are kept, the best, and of equals the newer. The first and the newest message of
// a user and the newest message of all stay whatever their score, also where most is less than three. If no word of the
// description occurs, there are no scores, and only most drops messages.
func Relevant(messages []Message, description string, cutoff float64, most int) (kept []Message, gaps []Gap) {
	found := relevant(messages, description, cutoff, most)
	return found.kept, found.gaps
}

// selection is the messages that Relevant keeps.
type selection struct {
	kept   []Message
	gaps   []Gap
	passed int  // messages that would be kept without a limit on their number
	known  bool // some message has a word of the description
}

func relevant(messages []Message, description string, cutoff float64, most int) selection {
	if len(messages) == 0 {
		return selection{}
	}
	scores := scoresOf(messages, description)
	found := selection{known: slices.Max(scores) > 0}
	if !found.known {
		cutoff = 0
	}
	keep := make([]bool, len(messages))
	pin := func(i int) {
		if !keep[i] {
			keep[i] = true
			found.passed++
		}
	}
	pin(len(messages) - 1)
	isUser := func(m Message) bool { return m.Role == User }
	if first := slices.IndexFunc(messages, isUser); first >= 0 {
		pin(first)
	}
	for i := len(messages) - 1; i >= 0; i-- {
		if isUser(messages[i]) {
			pin(i)
			break
		}
	}
	left := most - found.passed
	for _, i := range byScore(scores) {
		if scores[i] < cutoff || keep[i] {
			continue
		}
		found.passed++
		if keep[i] = most <= 0 || left > 0; keep[i] {
			left--
		}
	}
	missing := 0
	for i := range messages {
		if !keep[i] {
			missing++
			continue
		}
		if missing > 0 {
			found.gaps = append(found.gaps, Gap{Before: len(found.kept), LeftOut: missing})
		}
		found.kept, missing = append(found.kept, messages[i]), 0
	}
	return found
}

// warnings describe what was dropped from total messages: by the cut-off, and by the limit on their number.
func (s *selection) warnings(total, most int) (warnings []Warning) {
	below, beyond := total-s.passed, s.passed-len(s.kept)
	const describe = "Use the words of the messages that matter in the description"
	if below > 0 {
		low := Warning{
			Severity:   Low,
			Message:    fmt.Sprintf("conversation_history has %d messages, %d of them left out as less relevant", total, below),
			Suggestion: "Lower relevance to keep more of them",
		}
		if beyond > 0 { // then a lower cut-off keeps no more
			low.Suggestion = describe
		}
		warnings = append(warnings, low)
	}
	switch {
	case beyond > 0 && s.known:
		warnings = append(warnings, Warning{
			Severity:   Medium,
			Message:    fmt.Sprintf("conversation_history has %d messages, %d of them relevant enough, truncating to the most relevant %d", total, s.passed, most),
			Suggestion: "Consider a description that says more exactly what matters, by which they are ranked, or fewer messages",
		})
	case beyond > 0:
		warnings = append(warnings, Warning{
			Severity:   Medium,
			Message:    fmt.Sprintf("conversation_history has %d messages, none with a word of the description, truncating to %d: the first of the user and the most recent", total, most),
			Suggestion: describe,
		})
	}
	return warnings
}

// byScore returns the indexes of scores, the best first and of equals the last first.
func byScore(scores []float64) []int {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = len(scores) - 1 - i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order
}

// The usual constants of BM25: how fast repetitions of a word stop counting, and how much length counts.
const (
	saturation = 1.2
	lengthBias = 0.75
)

// scoresOf returns the messages' scores as Relevant describes them.
func scoresOf(messages []Message, description string) []float64 {
	asked := distinct(wordsOf(description))
	counts, lengths := make([]map[string]int, len(messages)), make([]float64, len(messages))
	in, total := map[string]int{}, 0.0
	for i := range messages {
		counts[i] = map[string]int{}
		for _, word := range wordsOf(searched(&messages[i])) {
			lengths[i]++
			if _, found := slices.BinarySearch(asked, word); !found {
				continue
			}
			if counts[i][word]++; counts[i][word] == 1 {
				in[word]++
			}
		}
		total += lengths[i]
	}
	scores := make([]float64, len(messages))
	best := 0.0
	for i := range messages {
		length := 1 - lengthBias + lengthBias*lengths[i]*float64(len(messages))/max(total, 1)
		for _, word := range asked { // in order, so that the sum is deterministic
			n, often := float64(in[word]), float64(counts[i][word])
			rarity := math.Log(1 + (float64(len(messages))-n+0.5)/(n+0.5))
			scores[i] += rarity * often * (saturation + 1) / (often + saturation*length)
		}
		best = max(best, scores[i])
	}
	return withNeighbours(scores, best)
}

// withNeighbours divides scores by the best one, and raises each to at least half of its neighbours'.
func withNeighbours(scores []float64, best float64) []float64 {
	if best == 0 {
		return scores
	}
	shared := make([]float64, len(scores))
	for i := range scores {
		shared[i] = scores[i]
		if i > 0 {
			shared[i] = max(shared[i], scores[i-1]/2)
		}
		if i+1 < len(scores) {
			shared[i] = max(shared[i], scores[i+1]/2)
		}
		shared[i] = rounded(shared[i] / best)
	}
	return shared
}

// rounded removes the digits in which processors differ, so that the same messages are kept everywhere.
func rounded(score float64) float64 { return math.Round(score*1e9) / 1e9 }

// maxSearched is how many bytes of a message its score is computed from.
const maxSearched = 64 << 10

func searched(message *Message) string {
	text := message.Content
	for _, attachment := range message.Attachments {
		text += "\n" + attachment.Name + "\n" + attachment.Content
	}
	return firstChars(text, maxSearched)
}

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
