// Package historybench measures message histories of langchaingo in the same way.
package historybench

import (
	"fmt"
	"testing"

	"github.com/tmc/langchaingo/schema"
)

// Add adds a message.
func Add(b *testing.B, h schema.ChatMessageHistory) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		add(b, h, i)
	}
}

// Messages reads a history of 200 messages.
func Messages(b *testing.B, h schema.ChatMessageHistory) {
	for i := range 200 {
		add(b, h, i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if messages, err := h.Messages(b.Context()); err != nil || len(messages) != 200 {
			b.Fatal(len(messages), err)
		}
	}
}

func add(b *testing.B, h schema.ChatMessageHistory, i int) {
	b.Helper()
	say := h.AddUserMessage
	if i%2 == 1 {
		say = h.AddAIMessage
	}
	if err := say(b.Context(), fmt.Sprintf("message %d, which is about as long as messages of people are in a conversation", i)); err != nil {
		b.Fatal(err)
	}
}
