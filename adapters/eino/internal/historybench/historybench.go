// Package historybench has the stores of Eino's examples, written again by what they do, to measure Continuo's beside them:
// Eino itself has none.
package historybench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/cloudwego/eino/schema"
)

// History is one session.
type History interface {
	Append(ctx context.Context, message *schema.Message) error
	Read(ctx context.Context) ([]*schema.Message, error)
}

// Gob keeps a session in memory as bytes of encoding/gob, all of which each append writes again.
type Gob struct{ data []byte }

// Append adds a message.
func (g *Gob) Append(ctx context.Context, message *schema.Message) error {
	messages, err := g.Read(ctx)
	if err != nil {
		return err
	}
	var data bytes.Buffer
	err = gob.NewEncoder(&data).Encode(append(messages, message))
	g.data = data.Bytes()
	return err
}

// Read returns the messages.
func (g *Gob) Read(context.Context) (messages []*schema.Message, err error) {
	if len(g.data) == 0 {
		return nil, nil
	}
	return messages, gob.NewDecoder(bytes.NewReader(g.data)).Decode(&messages)
}

// Lines keeps a session in a file at a path, a line of JSON for each message.
type Lines struct {
	Path string
	// Durable makes a message durable before Append returns, which the examples do not.
	Durable bool
}

// Append adds a message.
func (l Lines) Append(_ context.Context, message *schema.Message) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(l.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, "%s\n", data); err != nil || !l.Durable {
		return err
	}
	return file.Sync()
}

// Read returns the messages.
func (l Lines) Read(context.Context) (messages []*schema.Message, err error) {
	file, err := os.Open(l.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		message := &schema.Message{}
		if err := json.Unmarshal(lines.Bytes(), message); err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// Append appends a message to a session of a few.
func Append(b *testing.B, h History) {
	fill(b, h, 4)
	b.ReportAllocs()
	for i := 4; b.Loop(); i++ {
		add(b, h, i)
	}
}

// Read reads a session of 200 messages.
func Read(b *testing.B, h History) {
	fill(b, h, 200)
	b.ReportAllocs()
	for b.Loop() {
		if messages, err := h.Read(b.Context()); err != nil || len(messages) != 200 {
			b.Fatal(len(messages), err)
		}
	}
}

func fill(b *testing.B, h History, n int) {
	b.Helper()
	for i := range n {
		add(b, h, i)
	}
}

func add(b *testing.B, h History, i int) {
	b.Helper()
	text := fmt.Sprintf("message %d, which is about as long as messages of people are in a conversation", i)
	message := schema.UserMessage(text)
	if i%2 == 1 {
		message = schema.AssistantMessage(text, nil)
	}
	if err := h.Append(b.Context(), message); err != nil {
		b.Fatal(err)
	}
}
