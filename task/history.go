package task

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
)

// History is the conversation that led to a task, as it is stored.
type History struct {
	Messages        []Shaped `json:"messages"`
	TotalMessages   int      `json:"total_messages"` // of Messages
	TruncatedCount  int      `json:"truncated_count"`
	SummarizedCount int      `json:"summarized_count,omitempty"`
	// Gaps are where messages were left out because of low relevance, in order.
	Gaps     []Gap    `json:"gaps,omitempty"`
	Metadata Metadata `json:"metadata"`
}

// Shaped is a message in the form that a history stores. An incomplete one is either truncated or summarized.
type Shaped struct {
	Role           Role         `json:"role"`
	Content        string       `json:"content"`
	Timestamp      string       `json:"timestamp"`
	Truncated      bool         `json:"truncated"`
	Summarized     bool         `json:"summarized,omitempty"`
	OriginalLength int          `json:"original_length"` // characters of the whole content
	Attachments    []Attachment `json:"attachments,omitempty"`
}

// Gap is a number of messages that were left out before a message.
type Gap struct {
	Before  int `json:"before"` // index of the message that follows, from 0
	LeftOut int `json:"left_out"`
}

// Metadata is when a history was made and the time that it covers. Oldest and newest are found by comparing instants
// and are the messages' own timestamps; they are missing when no timestamp can be parsed.
type Metadata struct {
	CollectionTime string `json:"collection_time"`
	OldestMessage  string `json:"oldest_message,omitempty"`
	NewestMessage  string `json:"newest_message,omitempty"`
}

// shaper truncates messages, or summarizes them if it has a summarizer.
type shaper struct {
	limits     Limits
	summarizer Summarizer
	progress   func(made, total int) // nil for none
	warnings   []Warning
}

func (s *shaper) history(ctx context.Context, messages []Message, now time.Time) (*History, error) {
	history := History{
		Messages: make([]Shaped, len(messages)), TotalMessages: len(messages),
		Metadata: Metadata{CollectionTime: timestampOf(now)},
	}
	history.Metadata.OldestMessage, history.Metadata.NewestMessage = span(messages)
	var long []int // the messages that are to be summarized
	for i := range messages {
		history.Messages[i] = s.shape(&messages[i])
		switch shaped := &history.Messages[i]; {
		case shaped.Truncated:
			history.TruncatedCount++
		case shaped.Summarized:
			long = append(long, i)
		}
	}
	history.SummarizedCount = len(long)
	return &history, s.summarize(ctx, messages, history.Messages, long)
}

// shape truncates a message that is too long, or marks it for a summary.
func (s *shaper) shape(message *Message) Shaped {
	chars := utf8.RuneCountInString(message.Content)
	shaped := Shaped{
		Role: message.Role, Content: message.Content, Timestamp: message.Timestamp,
		OriginalLength: chars, Attachments: message.Attachments,
	}
	switch {
	case chars <= s.limits.maxOf(message.Role):
	case s.summarizer != nil:
		shaped.Summarized = true
	default:
		shaped.Truncated = true
		shaped.Content = firstChars(message.Content, s.limits.keepOf(message.Role)) + cutMark("... (truncated", message.Role, chars)
	}
	return shaped
}

// cutMark ends an incomplete content. The mark of a user's message includes its length, as it is usually kept whole.
func cutMark(what string, role Role, chars int) string {
	if role == User {
		return fmt.Sprintf(" %s, original: %d chars)", what, chars)
	}
	return " " + what + ")"
}

// maxAtOnce is how many summaries are made concurrently.
const maxAtOnce = 4

// summarize makes the summaries of messages, several concurrently. The only error is that of a context that is done; no
// summary is started after that.
func (s *shaper) summarize(ctx context.Context, messages []Message, shaped []Shaped, long []int) error {
	progress := counted{report: s.progress, total: len(long)}
	fellBack := make([]bool, len(messages))
	next := make(chan int)
	var working sync.WaitGroup
	for range min(maxAtOnce, len(long)) {
		working.Go(func() {
			for i := range next {
				if ctx.Err() == nil {
					fellBack[i] = s.summarizeOne(ctx, &messages[i], &shaped[i])
					progress.one()
				}
			}
		})
	}
	for _, i := range long {
		next <- i
	}
	close(next)
	working.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("summarize the history: %w", ctx.Err())
	}
	for i, fell := range fellBack {
		if fell {
			s.warnings = append(s.warnings, notSummarized(i))
		}
	}
	return nil
}

// summarizeOne makes the summary of a message. It reports whether the summarizer failed, so that sentences were
// extracted instead.
func (s *shaper) summarizeOne(ctx context.Context, message *Message, shaped *Shaped) (fellBack bool) {
	most := s.limits.keepOf(message.Role)
	summary, err := s.summarizer.Summarize(ctx, message.Content, most)
	summary = clean(summary)
	if err != nil || summary == "" {
		_, own := s.summarizer.(Extractive)
		summary, fellBack = extract(message.Content, most), !own
	}
	shaped.Content = firstChars(summary, most) + cutMark("(summarized", message.Role, shaped.OriginalLength)
	return fellBack
}

func notSummarized(index int) Warning {
	return Warning{
		Severity:   Low,
		Message:    fmt.Sprintf("message [%d] of the history could not be summarized by the model; sentences of it were taken", index+1),
		Suggestion: "Check the model that makes summaries",
	}
}

// counted counts summaries and reports the count. It is safe for concurrent use.
type counted struct {
	report func(made, total int) // nil for none
	total  int

	mu   sync.Mutex
	made int
}

// one adds one to the count.
func (c *counted) one() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made++; c.report != nil {
		c.report(c.made, c.total)
	}
}
