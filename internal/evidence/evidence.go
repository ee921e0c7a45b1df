// Package evidence reads conversations with annotated questions, and measures which share of the annotated evidence a
// selection of messages holds. A file is JSON Lines, gzip-packed or not: a line has an id, messages in the OpenAI form
// with name, ts and session, and qa, a list of {question, evidence, category}, where evidence lists indexes of messages.
package evidence

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/recall"
)

// Conversation is an annotated conversation.
type Conversation struct {
	ID        string     `json:"id"`
	Messages  []Message  `json:"messages"`
	Questions []Question `json:"qa"`
}

// Message is one message.
type Message struct {
	Role    continuo.Role   `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   json.RawMessage `json:"tool_calls"`
	Name    string          `json:"name"`
	Time    string          `json:"ts"`
	Session json.RawMessage `json:"session"`
}

// Question is an annotated question.
type Question struct {
	Question string `json:"question"`
	Evidence []int  `json:"evidence"`
	Category string `json:"category"`
}

// Load reads a file.
func Load(path string) ([]Conversation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, 1<<20)
	var source io.Reader = reader
	if magic, err := reader.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if source, err = gzip.NewReader(reader); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	decoder := json.NewDecoder(source)
	var conversations []Conversation
	for {
		var c Conversation
		err := decoder.Decode(&c)
		if errors.Is(err, io.EOF) {
			return conversations, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: conversation %d: %w", path, len(conversations)+1, err)
		}
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("read %s: conversation %d: %w", path, len(conversations)+1, err)
		}
		conversations = append(conversations, c)
	}
}

func (c *Conversation) check() error {
	for i, q := range c.Questions {
		for _, message := range q.Evidence {
			if message < 0 || message >= len(c.Messages) {
				return fmt.Errorf("question %d names message %d of %d", i, message, len(c.Messages))
			}
		}
	}
	return nil
}

// mark is what the makers of one set of data left at the end of users' messages; it tells evidence from small talk.
var mark = regexp.MustCompile(`(?s)->->.*$`)

// Text is the message's text, without the maker's mark.
func (m *Message) Text() string { return strings.TrimRight(mark.ReplaceAllString(m.full(), ""), " \n") }

func (m *Message) full() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(part.Text)
	}
	return all.String()
}

// Tokens estimates the message's tokens from the characters of its whole text and of its calls.
func (m *Message) Tokens() int {
	n := utf8.RuneCountInString(m.full())
	if calls := bytes.TrimSpace(m.Calls); len(calls) > 0 && !bytes.Equal(calls, []byte("null")) {
		n += utf8.RuneCount(calls)
	}
	return (n + 3) / 4
}

// At is the message's time; zero for none.
func (m *Message) At() time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
		if at, err := time.Parse(layout, m.Time); err == nil {
			return at
		}
	}
	return time.Time{}
}

// Documents are the messages as the ranker reads them.
func (c *Conversation) Documents() []recall.Document {
	documents := make([]recall.Document, len(c.Messages))
	for i := range c.Messages {
		m := &c.Messages[i]
		documents[i] = recall.Document{
			ConversationID: c.ID, Seq: int64(i + 1), Role: m.Role, Speaker: m.Name, At: m.At(), Text: m.Text(), Tokens: m.Tokens(),
		}
	}
	return documents
}

// Score sums how much of the evidence selections hold.
type Score struct {
	Questions    int
	Recall, Full float64 // sums
}

// Add adds the selection for a question.
func (s *Score) Add(evidence []int, has func(message int) bool) {
	found, all := 0, true
	for _, message := range evidence {
		if has(message) {
			found++
		} else {
			all = false
		}
	}
	s.Questions++
	s.Recall += float64(found) / float64(len(evidence))
	if all {
		s.Full++
	}
}

// Sum adds another score.
func (s *Score) Sum(other Score) {
	s.Questions += other.Questions
	s.Recall += other.Recall
	s.Full += other.Full
}

// Means are the mean recall and the share of questions whose evidence is held completely.
func (s Score) Means() (recall, full float64) {
	n := float64(max(1, s.Questions))
	return s.Recall / n, s.Full / n
}

// Take selects documents in an order while they fit into a budget of tokens.
func Take(order []int, tokens func(i int) int, budget int) []int {
	var taken []int
	for _, i := range order {
		if n := tokens(i); n <= budget {
			taken = append(taken, i)
			budget -= n
		}
	}
	slices.Sort(taken)
	return taken
}
