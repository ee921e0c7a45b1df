package task

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/recall"
)

// Relevant drops the messages that have little to do with a task's description and keeps the others in order. gaps are
// where messages were dropped.
//
// Each message has a score from 0 to 1: where it stands between the least and the most probable message, by the logarithm
// of the odds that package recall gives it (words in common, by their rarity and in other forms, its neighbours, dates,
// names, standing instructions). A message that is not within two messages of one with a word of the description has
// the score 0; then each gets at least half the score of its neighbours. Messages below the cut-off are dropped; 0 keeps all, 1 only the best.
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

// reach is how far from a message with a word of the description others count as related to it.
const reach = 2

// scoresOf returns the messages' scores as Relevant describes them.
func scoresOf(messages []Message, description string) []float64 {
	documents := make([]recall.Document, len(messages))
	for i := range messages {
		documents[i] = documentOf(&messages[i], i)
	}
	corpus := recall.NewCorpus(recall.Statistics{}, documents)
	related := make([]bool, len(messages))
	for i, match := range corpus.Matches(description) {
		if len(match.Words) == 0 {
			continue
		}
		for near := max(0, i-reach); near <= min(i+reach, len(messages)-1); near++ {
			related[near] = true
		}
	}
	scores := make([]float64, len(messages))
	ranked := corpus.Rank(description)
	least, best := int64(math.MaxInt64), int64(math.MinInt64)
	for _, scored := range ranked {
		least = min(least, scored.Odds)
		if related[scored.Index] {
			best = max(best, scored.Odds)
		}
	}
	for _, scored := range ranked {
		switch {
		case !related[scored.Index]:
		case best <= least:
			scores[scored.Index] = 1
		default:
			scores[scored.Index] = max(leastScore, float64(scored.Odds-least)/float64(best-least))
		}
	}
	return withNeighbours(scores)
}

// withNeighbours raises each score to at least half of its neighbours': an answer often repeats nothing of its question.
func withNeighbours(scores []float64) []float64 {
	shared := slices.Clone(scores)
	for i := range scores {
		if i > 0 {
			shared[i] = max(shared[i], scores[i-1]/2)
		}
		if i+1 < len(scores) {
			shared[i] = max(shared[i], scores[i+1]/2)
		}
	}
	return shared
}

// leastScore is what a related message has at least.
const leastScore = 0.01

// maxSearched is how many bytes of a message its score is computed from.
const maxSearched = 64 << 10

// documentOf is a message as the ranker reads it, with its attachments.
func documentOf(message *Message, i int) recall.Document {
	text := message.Content
	for _, attachment := range message.Attachments {
		text += "\n" + attachment.Name + "\n" + attachment.Content
	}
	text = firstChars(text, maxSearched)
	role := continuo.Assistant
	if message.Role == User {
		role = continuo.User
	}
	at, _ := instantOf(message.Timestamp)
	return recall.Document{Seq: int64(i + 1), Role: role, At: at, Text: text, Tokens: len(text) / bytesPerToken}
}

const bytesPerToken = 4
