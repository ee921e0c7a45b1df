package task

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"
)

// History is the conversation that led to a task, as it is stored.
type History struct {
	Messages        []Shaped `json:"messages"`
	TotalMessages   int      `json:"total_messages"` // of Messages
	TruncatedCount  int      `json:"truncated_count"`
	SummarizedCount int      `json:"summarized_count,omitempty"`
	// Gaps are where messages were left out for want of relevance, in order.
	Gaps     []Gap    `json:"gaps,omitempty"`
	Metadata Metadata `json:"metadata"`
}

// Shaped is a message as a history keeps it. One that is not whole is truncated or summarized, not both.
type Shaped struct {
	Role           Role         `json:"role"`
	Content        string       `json:"content"`
	Timestamp      string       `json:"timestamp"`
	Truncated      bool         `json:"truncated"`
	Summarized     bool         `json:"summarized,omitempty"`
	OriginalLength int          `json:"original_length"` // characters of the whole content
	Attachments    []Attachment `json:"attachments,omitempty"`
}

// Gap tells of messages that were left out before a message.
type Gap struct {
	Before  int `json:"before"` // index of the message that follows, from 0
	LeftOut int `json:"left_out"`
}

// Metadata tells when a history was made and which time it covers. Oldest and newest compare moments and are the
// messages' own timestamps; they are missing when no timestamp can be read.
type Metadata struct {
	CollectionTime string `json:"collection_time"`
	OldestMessage  string `json:"oldest_message,omitempty"`
	NewestMessage  string `json:"newest_message,omitempty"`
}

// shaper cuts messages, or summarizes them if it has a summarizer.
type shaper struct {
	limits     Limits
	summarizer Summarizer
	warnings   []Warning
}

func (s *shaper) history(ctx context.Context, messages []Message, now time.Time) (*History, error) {
	history := History{
		Messages: make([]Shaped, len(messages)), TotalMessages: len(messages),
		Metadata: Metadata{CollectionTime: timestampOf(now)},
	}
	history.Metadata.OldestMessage, history.Metadata.NewestMessage = span(messages)
	for i := range messages {
		shaped, err := s.shape(ctx, &messages[i], i)
		if err != nil {
			return nil, err
		}
		if shaped.Truncated {
			history.TruncatedCount++
		}
		if shaped.Summarized {
			history.SummarizedCount++
		}
		history.Messages[i] = shaped
	}
	return &history, nil
}

func (s *shaper) shape(ctx context.Context, message *Message, index int) (Shaped, error) {
	chars := utf8.RuneCountInString(message.Content)
	shaped := Shaped{
		Role: message.Role, Content: message.Content, Timestamp: message.Timestamp,
		OriginalLength: chars, Attachments: message.Attachments,
	}
	if chars <= s.limits.maxOf(message.Role) {
		return shaped, nil
	}
	keep := s.limits.keepOf(message.Role)
	if s.summarizer == nil {
		shaped.Truncated = true
		shaped.Content = firstChars(message.Content, keep) + cutMark("... (truncated", message.Role, chars)
		return shaped, nil
	}
	summary, err := s.summarize(ctx, message.Content, keep, index)
	if err != nil {
		return Shaped{}, err
	}
	shaped.Summarized = true
	shaped.Content = summary + cutMark("(summarized", message.Role, chars)
	return shaped, nil
}

// cutMark ends a content that is not whole. A user's message tells its length, as it usually stays whole.
func cutMark(what string, role Role, chars int) string {
	if role == User {
		return fmt.Sprintf(" %s, original: %d chars)", what, chars)
	}
	return " " + what + ")"
}

func (s *shaper) summarize(ctx context.Context, text string, most, index int) (string, error) {
	summary, err := s.summarizer.Summarize(ctx, text, most)
	if ctx.Err() != nil {
		return "", fmt.Errorf("summarize message [%d] of the history: %w", index+1, ctx.Err())
	}
	summary = clean(summary)
	if err != nil || summary == "" {
		if _, own := s.summarizer.(Extractive); !own {
			s.warnings = append(s.warnings, Warning{
				Severity:   Low,
				Message:    fmt.Sprintf("message [%d] of the history could not be summarized by the model; sentences of it were taken", index+1),
				Suggestion: "Check the model that makes summaries",
			})
		}
		summary = extract(text, most)
	}
	return firstChars(summary, most), nil
}
