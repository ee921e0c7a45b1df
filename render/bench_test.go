package render

import (
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// benchMessages are 80 messages with 120 000 characters, a quarter of them calls with results.
func benchMessages() []window.Message {
	text := strings.Repeat("A line of text that says something.\n", 42)
	var messages []window.Message
	for i := range 20 {
		id := fmt.Sprint("call_", i)
		messages = append(messages, user(text), assistant(text, call(id)), result(id, text), assistant(text))
	}
	for i := range messages {
		messages[i].Seq = int64(i + 1)
	}
	return messages
}

func BenchmarkOpenAIChatRequest(b *testing.B) {
	messages := benchMessages()
	for b.Loop() {
		body, err := OpenAIChatRequest(continuo.Envelope{Model: "m"}, messages, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

func BenchmarkAnthropicRequest(b *testing.B) {
	messages := benchMessages()
	for b.Loop() {
		body, err := AnthropicRequest(continuo.Envelope{Model: "m"}, messages, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

func BenchmarkResponsesRequest(b *testing.B) {
	messages := benchMessages()
	for b.Loop() {
		body, err := ResponsesRequest(continuo.Envelope{Model: "m"}, messages, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

func BenchmarkGeminiRequest(b *testing.B) {
	messages := benchMessages()
	for b.Loop() {
		body, err := GeminiRequest(continuo.Envelope{Model: "m"}, messages, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

func BenchmarkTranscript(b *testing.B) {
	plan := &window.Plan{Messages: benchMessages()}
	for b.Loop() {
		text := TranscriptOf(plan).String()
		b.SetBytes(int64(len(text)))
	}
}

func BenchmarkReadTranscript(b *testing.B) {
	text := TranscriptOf(&window.Plan{Messages: benchMessages()}).String()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := ReadTranscript(text); err != nil {
			b.Fatal(err)
		}
	}
}
