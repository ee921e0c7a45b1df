package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
)

// auditOperations say who read and changed what.
func (s *Service) auditOperations() []Operation {
	return []Operation{
		define(Operation{
			ID: "listAudit", Method: "GET", Path: "/api/audit", Tag: "service", Summary: "list who read and changed what", Unbound: true,
			Answers: answers(ok("A page of events."), failing(http.StatusForbidden, "The key is a user's (`user_key`), or as for any other call.")),
		}, s.ListAudit),
	}
}

// AuditFilter selects a page of the audit log.
type AuditFilter struct {
	// A `cursor` or `next` of this list: only later events. `newest` is its end, `oldest`, the default, its beginning.
	After string `query:"after" maxLength:"40"`
	// Only events of this API key, by its id; empty for callers without a key.
	Key *string `query:"key" maxLength:"64"`
	// Only events that name this conversation.
	Conversation string `query:"conversation" maxLength:"128"`
	// Only this operation, such as `deleteConversation`.
	Operation string `query:"operation" maxLength:"128"`
	// Only events of this time or later (RFC 3339).
	From *string `query:"from" doc:"format=date-time"`
	// Only events of before this time.
	To *string `query:"to" doc:"format=date-time"`
	// The maximum number of events.
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100"`

	position int64
	from, to time.Time
}

// Check reads the cursor and the times.
func (in *AuditFilter) Check() error {
	cursor := FeedCursor{After: in.After}
	if err := cursor.Check(); err != nil {
		return Refuse("after", "after must be a cursor of this list, oldest or newest, not %q", Bounded(in.After))
	}
	in.position = max(cursor.position, 0)
	for _, given := range []struct {
		name string
		text *string
		at   *time.Time
	}{{"from", in.From, &in.from}, {"to", in.To, &in.to}} {
		if given.text == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, *given.text)
		if err != nil {
			return Refuse(given.name, "%s must be a time such as 2026-11-01T08:00:00Z, not %q", given.name, Bounded(*given.text))
		}
		*given.at = at
	}
	if in.From != nil && in.To != nil && in.from.After(in.to) {
		return Refuse("to", "from is %s and to is %s: from must not come after to", Bounded(*in.From), Bounded(*in.To))
	}
	return nil
}

// AuditEvent is an operation that was carried out or refused. It has no content.
type AuditEvent struct {
	// The event's place in the list, for `after`.
	Cursor string `json:"cursor"`
	// When the operation ended, of a stream when it began; of several the time of the last one.
	At time.Time `json:"at"`
	// How the operation reached the program: `mcp` is on standard input, `server` the server by itself.
	Origin audit.Origin `json:"origin" enum:"http,mcp,cli,server"`
	// The caller's API key and browser session, and the user that the key is bound to; empty for none.
	KeyID     string `json:"key_id"`
	SessionID string `json:"session_id"`
	UserID    string `json:"user_id"`
	// The operation's id in this document; `mcp.`, `gateway.`, `cli.` or `retention.` and a name for others; `none` for a path
	// without an operation; `many` for refusals that are counted together.
	Operation string `json:"operation"`
	// The conversation that was read or changed; empty for none or several.
	ConversationID string `json:"conversation_id"`
	// What else was named, such as the id of a key or a run.
	Target string `json:"target"`
	// The outcome as an HTTP status.
	Status int `json:"status"`
	// The address of the client.
	Remote    string `json:"remote"`
	RequestID string `json:"request_id"`
	// How many times it happened: repeated reads and refusals of a minute are one event.
	Count int64 `json:"count"`
}

// AuditEventOf converts an event to the form for clients.
func AuditEventOf(e audit.Event) AuditEvent {
	return AuditEvent{
		Cursor: strconv.FormatInt(e.Position, 10), At: e.At, Origin: e.Origin, KeyID: e.KeyID, SessionID: e.SessionID, UserID: e.UserID, Operation: e.Operation,
		ConversationID: e.ConversationID, Target: e.Target, Status: e.Status, Remote: e.Remote, RequestID: e.RequestID, Count: e.Count,
	}
}

// AuditPage is a page of the audit log.
type AuditPage struct {
	Data []AuditEvent `json:"data"`
	// Whether there are more events already.
	HasMore bool `json:"has_more"`
	// The `after` of the next page, also where there are no more events yet.
	Next string `json:"next"`
}

// ListAudit lists who read and changed what in the project.
//
// The oldest event first; an event that is recorded later always comes later. Changes and refusals are recorded, reads where
// the setting `audit.reads` is on. A change is in the list before its answer is sent; others are within about a second, and
// repeated ones within a minute. Events stay when conversations are deleted, for as long as `audit.keep` says. It takes a key that
// no user is bound to.
func (s *Service) ListAudit(ctx context.Context, scope continuo.Scope, in AuditFilter) (AuditPage, error) {
	query := audit.Query{
		ProjectID: scope.ProjectID, After: in.position, KeyID: in.Key, ConversationID: in.Conversation, Operation: in.Operation, Limit: in.Limit + 1,
		From: in.from, To: in.to,
	}
	if in.After == newest || in.position > 0 {
		last, err := s.Audit.Last(ctx)
		switch {
		case err != nil:
			return AuditPage{}, err
		case in.After == newest:
			query.After = last
		case in.position > last:
			return AuditPage{}, Refuse("after", "the audit log ends before %d, as after an older state of the store was restored: go on with after=oldest", in.position)
		}
	}
	events, err := s.Audit.Events(ctx, query)
	if err != nil {
		return AuditPage{}, err
	}
	page := AuditPage{Data: []AuditEvent{}, HasMore: len(events) > in.Limit, Next: strconv.FormatInt(query.After, 10)}
	for _, event := range events[:min(len(events), in.Limit)] {
		page.Data = append(page.Data, AuditEventOf(event))
		page.Next = strconv.FormatInt(event.Position, 10)
	}
	return page, nil
}
