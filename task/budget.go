package task

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/continuo-log/continuo/token"
)

// A task's prompt has at most Limits.MaxTokens tokens, counted with the encoding o200k. Where the history would exceed
// them, its longest texts are truncated further, all to the same number of tokens; the newest message of a user stays
// unchanged. Where even short texts are too much, the oldest messages are dropped.

// leastTokens is the fewest tokens that a text is truncated to before the oldest messages are dropped.
const leastTokens = 24

// sampleBytes is how much of a text's beginning, middle and end is tokenized to estimate its number of tokens.
const sampleBytes = 256

// excerpt is a text of a history that can be truncated: a message's content or an attachment's.
type excerpt struct {
	text    string
	perByte float64 // tokens
	tokens  float64 // of the part in the history, estimated
	cut     func(text string)
}

// fitTokens truncates the history of a task so that its prompt fits, and returns a warning if it did. messages are
// those that the history was made from.
func (s *shaper) fitTokens(task *Task, messages []Message) []Warning {
	history, most := task.Context.ConversationHistory, s.limits.MaxTokens
	if history == nil {
		return nil
	}
	excerpts := excerptsOf(history, messages)
	if fits(task, excerpts, most) {
		return nil
	}
	budget := most - tokensOf(withoutTexts(task))
	longest, left := 0.0, 0
	for range 8 {
		budget -= max(budget, 0) / 50 // densities are estimates
		longest = cutTo(excerpts, float64(budget))
		tokens := tokensOf(task)
		if tokens <= most {
			break
		}
		if longest <= leastTokens {
			left = dropOldest(task, most)
			break
		}
		budget -= tokens - most
	}
	history.countTruncated()
	return []Warning{tooManyTokens(most, int(longest), left)}
}

// fits reports whether the prompt has at most that many tokens. It counts them only where the estimate is close.
func fits(task *Task, excerpts []excerpt, most int) bool {
	estimated := 0.0
	for _, e := range excerpts {
		estimated += e.tokens
	}
	return estimated <= 1.5*float64(most) && tokensOf(task) <= most
}

func (h *History) countTruncated() {
	h.TruncatedCount = 0
	for i := range h.Messages {
		if h.Messages[i].Truncated {
			h.TruncatedCount++
		}
	}
}

// dropOldest drops the oldest messages until the prompt fits, at most all but the newest, and returns how many.
func dropOldest(task *Task, most int) (left int) {
	history := task.Context.ConversationHistory
	for len(history.Messages) > 1 && tokensOf(task) > most {
		n := (len(history.Messages) + 2) / 4 // fewer than all
		left += n
		history.leaveOut(n)
	}
	return left
}

// leaveOut drops the oldest messages and records that in a gap.
func (h *History) leaveOut(n int) {
	left := n
	var gaps []Gap
	for _, gap := range h.Gaps {
		if gap.Before <= n {
			left += gap.LeftOut
			continue
		}
		gaps = append(gaps, Gap{Before: gap.Before - n, LeftOut: gap.LeftOut})
	}
	for i := range h.Messages[:n] {
		if h.Messages[i].Summarized {
			h.SummarizedCount--
		}
	}
	h.Messages = h.Messages[n:]
	h.TotalMessages = len(h.Messages)
	h.Gaps = append([]Gap{{LeftOut: left}}, gaps...)
}

func tooManyTokens(most, longest, left int) Warning {
	warning := Warning{
		Severity:   Medium,
		Message:    fmt.Sprintf("the task's prompt would have more than %d tokens: the longest texts of conversation_history are cut to about %d tokens each", most, longest),
		Suggestion: "Consider fewer or shorter messages, compression semantic, or relevance",
	}
	if left > 0 {
		warning.Message += fmt.Sprintf(", and the oldest %d messages are left out", left)
	}
	return warning
}

// excerptsOf lists the texts of a history that can be truncated.
func excerptsOf(history *History, messages []Message) []excerpt {
	newest := newestOfUser(history.Messages)
	var found []excerpt
	for i := range history.Messages {
		if i == newest {
			continue
		}
		shaped := &history.Messages[i]
		found = append(found, contentOf(shaped, &messages[i]))
		for j := range shaped.Attachments {
			found = append(found, attachedText(&shaped.Attachments[j]))
		}
	}
	return found
}

// newestOfUser returns the index of the newest message of a user, -1 for none.
func newestOfUser(messages []Shaped) int {
	for i, message := range slices.Backward(messages) {
		if message.Role == User {
			return i
		}
	}
	return -1
}

// contentOf is the content of a message, truncated with the usual mark.
func contentOf(shaped *Shaped, message *Message) excerpt {
	text, mark := message.Content, "... (truncated"
	if shaped.Summarized {
		text, mark = shaped.Content, "… (summarized"
	}
	perByte := density(text)
	return excerpt{text: text, perByte: perByte, tokens: perByte * float64(len(shaped.Content)), cut: func(text string) {
		shaped.Truncated = !shaped.Summarized
		shaped.Content = text + cutMark(mark, shaped.Role, shaped.OriginalLength)
	}}
}

func attachedText(a *Attachment) excerpt {
	perByte := density(a.Content)
	return excerpt{text: a.Content, perByte: perByte, tokens: perByte * float64(len(a.Content)), cut: func(text string) {
		if !a.Truncated {
			a.Truncated, a.OriginalLength = true, utf8.RuneCountInString(a.Content)
		}
		a.Content = text
	}}
}

// cutTo truncates the longest texts to the same number of tokens, so that all together have no more than the budget. It
// returns that number.
func cutTo(excerpts []excerpt, budget float64) (longest float64) {
	longest = max(shareOf(excerpts, budget), leastTokens)
	for _, e := range excerpts {
		if e.tokens > longest {
			e.cut(firstBytes(e.text, int(longest/e.perByte)))
		}
	}
	return longest
}

// shareOf is the most tokens that each text may have: short texts leave the rest of their share to the others.
func shareOf(excerpts []excerpt, budget float64) float64 {
	sizes := make([]float64, len(excerpts))
	for i := range excerpts {
		sizes[i] = excerpts[i].tokens
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		share := budget / float64(len(sizes)-i)
		if size > share {
			return share
		}
		budget -= size
	}
	return math.Inf(1)
}

// density is the approximate number of tokens per byte of a text.
func density(text string) float64 {
	sample := text
	if len(text) > 4*sampleBytes {
		last := len(text) - sampleBytes
		sample = text[:sampleBytes] + text[last/2:last/2+sampleBytes] + text[last:]
	}
	return float64(token.O200k().Count(sample)) / float64(max(len(sample), 1))
}

// firstBytes is the beginning of a text: whole characters, at most that many bytes.
func firstBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := max(most, 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// tokensOf counts the tokens of a task's prompt.
func tokensOf(task *Task) int { return token.O200k().Count(Prompt(*task)) }

// withoutTexts is a task whose history has none of the texts that can be truncated: its prompt is the part that cannot
// be.
func withoutTexts(task *Task) *Task {
	bare, history := *task, *task.Context.ConversationHistory
	history.Messages = slices.Clone(history.Messages)
	for i := range history.Messages {
		m := &history.Messages[i]
		m.Attachments = slices.Clone(m.Attachments)
		if i == newestOfUser(history.Messages) {
			continue
		}
		m.Content = ""
		for j := range m.Attachments {
			m.Attachments[j].Content = ""
		}
	}
	bare.Context.ConversationHistory = &history
	return &bare
}
