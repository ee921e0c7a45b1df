// Package sessionbench measures session services of ADK in the same way.
package sessionbench

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

// Append appends an event to a session of a few events.
func Append(b *testing.B, service session.Service) {
	made := newSession(b, service, 4)
	b.ReportAllocs()
	for i := 4; b.Loop(); i++ {
		if err := service.AppendEvent(b.Context(), made, event(i)); err != nil {
			b.Fatal(err)
		}
	}
}

// Get reads a session of 200 events.
func Get(b *testing.B, service session.Service) {
	made := newSession(b, service, 200)
	b.ReportAllocs()
	for b.Loop() {
		got, err := service.Get(b.Context(), &session.GetRequest{AppName: "bench", UserID: "u", SessionID: made.ID()})
		if err != nil {
			b.Fatal(err)
		}
		if n := got.Session.Events().Len(); n != 200 {
			b.Fatalf("%d events", n)
		}
	}
}

func newSession(b *testing.B, service session.Service, events int) session.Session {
	b.Helper()
	made, err := service.Create(b.Context(), &session.CreateRequest{AppName: "bench", UserID: "u"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range events {
		if err := service.AppendEvent(b.Context(), made.Session, event(i)); err != nil {
			b.Fatal(err)
		}
	}
	return made.Session
}

// event is one of a conversation in which a user and an agent take turns. Its time is late: ADK's SQL store refuses an event
// that is older than its session.
func event(i int) *session.Event {
	author, role := "user", genai.RoleUser
	if i%2 == 1 {
		author, role = "clerk", genai.RoleModel
	}
	text := fmt.Sprintf("message %d, which is about as long as messages of people are in a conversation", i)
	return &session.Event{
		ID: fmt.Sprint("e", i), Author: author, InvocationID: "inv", Timestamp: time.Now(),
		LLMResponse: model.LLMResponse{Content: &genai.Content{Role: role, Parts: []*genai.Part{{Text: text}}}},
	}
}
