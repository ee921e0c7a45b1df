// Package sessionbench measures session services of tRPC-Agent-Go in the same way.
package sessionbench

import (
	"fmt"
	"testing"
	"time"

	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/session"
)

// Append appends an event to a session of a few events.
func Append(b *testing.B, service session.Service) {
	made := newSession(b, service, 4)
	b.ReportAllocs()
	for i := 4; b.Loop(); i++ {
		if err := service.AppendEvent(b.Context(), made, newEvent(i), session.WithEventNum(10)); err != nil {
			b.Fatal(err)
		}
	}
}

// Get reads a session of 200 events.
func Get(b *testing.B, service session.Service) {
	made := newSession(b, service, 200)
	b.ReportAllocs()
	for b.Loop() {
		got, err := service.GetSession(b.Context(), session.Key{AppName: "bench", UserID: "u", SessionID: made.ID})
		if err != nil || len(got.Events) != 200 {
			b.Fatal(err, got)
		}
	}
}

func newSession(b *testing.B, service session.Service, events int) *session.Session {
	b.Helper()
	made, err := service.CreateSession(b.Context(), session.Key{AppName: "bench", UserID: "u"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range events {
		if err := service.AppendEvent(b.Context(), made, newEvent(i)); err != nil {
			b.Fatal(err)
		}
	}
	return made
}

// newEvent is one of a conversation in which a user and an agent take turns.
func newEvent(i int) *event.Event {
	author, role := "user", model.RoleUser
	if i%2 == 1 {
		author, role = "clerk", model.RoleAssistant
	}
	text := fmt.Sprintf("message %d, which is about as long as messages of people are in a conversation", i)
	return &event.Event{
		ID: fmt.Sprint("e", i), Author: author, InvocationID: "inv", Timestamp: time.Now(), Version: event.CurrentVersion,
		Response: &model.Response{Done: true, Choices: []model.Choice{{Message: model.Message{Role: role, Content: text}}}},
	}
}
