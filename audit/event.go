// Package audit records who read and changed what: an [Event] for each operation, never its content. A [Trail] adds events
// to a [Store], which keeps them apart from the conversations, so that they stay when these are deleted.
//
// A change is recorded before its answer is sent ([Trail.Commit]); reads and refusals are recorded in batches, and those
// that repeat within a minute as one event with a count ([Trail.Add]), so that nobody can fill the store with them.
//
// Pitfalls: an event is committed right after its change, not with it: of a process that is killed in between, a change that
// has no answer may have no event.
package audit

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Origin is the way in which an operation reached the program.
type Origin string

// The origins.
const (
	OriginHTTP   Origin = "http"   // the API, the gateway, MCP over HTTP
	OriginMCP    Origin = "mcp"    // MCP on standard input and output
	OriginCLI    Origin = "cli"    // a command
	OriginServer Origin = "server" // the server by itself: retention
)

// Caller is who asks for an operation.
type Caller struct {
	Origin Origin `json:"origin"`
	// KeyID is the API key, SessionID the session of a browser that it opened, UserID the user that it is bound to; "" for
	// none.
	KeyID     string `json:"key_id"`
	SessionID string `json:"session_id"`
	UserID    string `json:"user_id"`
	// Remote is the address of the client.
	Remote    string `json:"remote"`
	RequestID string `json:"request_id"`
	// ProjectID is the project in which the caller acts.
	ProjectID string `json:"project_id"`
}

// Event is an operation that was carried out or refused.
type Event struct {
	// Position is above that of every event that a reader could see before. There are gaps.
	Position int64 `json:"position"`
	// At is when it ended, of a stream when it began; of several the time of the last one.
	At time.Time `json:"at"`
	Caller
	// Operation is the operation's id in the OpenAPI document; "mcp." and a tool or method; "gateway." and the method and path
	// of a model API; "cli." and a command; "retention.deleted" or "retention.archived"; "none" for a path without an operation.
	Operation string `json:"operation"`
	// ConversationID is the conversation that was read or changed; "" for none or several. Target is what else was named,
	// such as the id of a key or a run.
	ConversationID string `json:"conversation_id"`
	Target         string `json:"target"`
	// Status is the outcome as an HTTP status, for every origin.
	Status int `json:"status"`
	// Count is how many times it happened: repeated reads and refusals are one event.
	Count int64 `json:"count"`
}

// Query selects events, in the order of their positions.
type Query struct {
	ProjectID string // "": of all projects
	After     int64  // a Position
	// Filters; the zero value selects all.
	KeyID          *string
	ConversationID string
	Operation      string
	From, To       time.Time // From inclusive, To exclusive
	// Newest selects the last Limit events rather than the first.
	Newest bool
	Limit  int // at least 1
}

// Store keeps events.
type Store interface {
	// AddAudit adds events and gives them positions, in their order; Position of the given ones is ignored.
	AddAudit(ctx context.Context, events []Event) error
	// AuditEvents lists events by Position, ascending.
	AuditEvents(ctx context.Context, query Query) ([]Event, error)
	// LastAudit is the highest Position of any project; 0 when there was no event.
	LastAudit(ctx context.Context) (int64, error)
	// PruneAudit removes the oldest events of before a time, at most limit, and returns how many.
	PruneAudit(ctx context.Context, before time.Time, limit int) (int, error)
}

// maxField bounds the fields of an event that callers choose, in bytes.
const maxField = 128

// secrets are what keys and tokens of sessions begin with. A caller may have sent one in place of an id.
var secrets = []string{"ctn_", "ctns_"}

// cleaned is an event whose fields can be stored and have no secrets.
func (e Event) cleaned() Event {
	for _, field := range []*string{
		&e.ProjectID, &e.KeyID, &e.SessionID, &e.UserID, &e.Operation, &e.ConversationID, &e.Target, &e.Remote, &e.RequestID,
	} {
		*field = clean(*field)
	}
	if e.Count == 0 {
		e.Count = 1
	}
	e.At = e.At.UTC()
	return e
}

func clean(field string) string {
	for _, secret := range secrets {
		if _, rest, found := strings.Cut(field, secret); found && len(rest) > 12 {
			return secret + strings.ToValidUTF8(rest[:12], "?") + "…"
		}
	}
	if len(field) > maxField {
		field = field[:maxField] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(field, "?"))
}

type callerKey struct{}

// WithCaller adds the caller of operations to a context.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerOf is the caller of a context's operations; ok is false where there is none.
func CallerOf(ctx context.Context) (caller Caller, ok bool) {
	caller, ok = ctx.Value(callerKey{}).(Caller)
	return caller, ok
}

// Subject collects what an operation is about while it runs. It is safe for concurrent use; a nil one collects nothing.
type Subject struct {
	mu            sync.Mutex
	conversations []string
	target        string
}

type subjectKey struct{}

// WithSubject adds a subject to the context of an operation.
func WithSubject(ctx context.Context, subject *Subject) context.Context {
	return context.WithValue(ctx, subjectKey{}, subject)
}

// maxConversations bounds how many conversations of one operation are collected.
const maxConversations = 10000

// About adds a conversation that the operation of a context reads or changes, once; "" is none.
func About(ctx context.Context, conversationID string) {
	subject, _ := ctx.Value(subjectKey{}).(*Subject)
	if subject == nil || conversationID == "" {
		return
	}
	subject.mu.Lock()
	defer subject.mu.Unlock()
	if len(subject.conversations) < maxConversations && !slices.Contains(subject.conversations, conversationID) {
		subject.conversations = append(subject.conversations, conversationID)
	}
}

// Targets says what else the operation of a context is about, such as a key.
func Targets(ctx context.Context, target string) {
	if subject, _ := ctx.Value(subjectKey{}).(*Subject); subject != nil {
		subject.mu.Lock()
		defer subject.mu.Unlock()
		subject.target = target
	}
}

// Conversations are those that were said.
func (s *Subject) Conversations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conversations)
}

// Fill sets the event's fields that were said; of several conversations the last.
func (s *Subject) Fill(event *Event) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.conversations) - 1; last >= 0 {
		event.ConversationID = s.conversations[last]
	}
	if s.target != "" {
		event.Target = s.target
	}
}
