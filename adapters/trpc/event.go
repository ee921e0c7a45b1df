package trpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/session"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

// form is what an entry has of its session, beside what people and models see: one of these.
type form struct {
	Event *event.Event `json:"event,omitempty"`
	// Text says that the content of the event's message, which is left out, is the entry's.
	Text    bool                `json:"text,omitempty"`
	State   session.StateMap    `json:"state,omitempty"`
	Track   *session.TrackEvent `json:"track,omitempty"`
	Summary *summaryOf          `json:"summary,omitempty"`
}

type summaryOf struct {
	FilterKey string           `json:"filter_key"`
	Summary   *session.Summary `json:"summary"`
}

// mirrored makes the entries of an event. An event that a session does not list has its change of state only, or nothing.
func mirrored(e *event.Event) (mirror.Message, error) {
	kept := mirror.Message{Vendor: vendor}
	var own form
	switch {
	case e.Response != nil && !e.IsPartial && e.IsValidContent():
		lasting := *e
		lasting.ExecutionTrace = nil
		kept.Entries = shown(e)
		own = form{Event: &lasting}
		if only := e.Choices[0].Message; len(e.Choices) == 1 && len(kept.Entries) == 1 && only.Content != "" && kept.Entries[0].Role != continuo.Tool &&
			kept.Entries[0].Content.String() == only.Content {
			response := *e.Response
			response.Choices = slices.Clone(e.Choices)
			response.Choices[0].Message.Content = ""
			lasting.Response = &response
			own.Text = true
		}
	case len(e.StateDelta) > 0:
		own = form{State: e.StateDelta}
	default:
		return kept, nil
	}
	var err error
	kept.Own, err = json.Marshal(own)
	return kept, err
}

// shown makes the entries in which people and models see an event: of its results, and of the first of its answers.
func shown(e *event.Event) []continuo.Entry {
	var results []continuo.Entry
	for _, choice := range e.Choices {
		if m := choice.Message; m.ToolID != "" || m.Role == model.RoleTool {
			results = append(results, continuo.Entry{
				Role: continuo.Tool, CreatedAt: e.Timestamp, ToolCallID: m.ToolID, ToolName: m.ToolName, Content: continuo.Text(textOf(m)),
			})
		}
	}
	if len(results) > 0 {
		return results
	}
	m := e.Choices[0].Message
	entry := continuo.Entry{Role: continuo.Assistant, CreatedAt: e.Timestamp, Content: continuo.Text(textOf(m))}
	switch m.Role {
	case model.RoleUser:
		entry.Role = continuo.User
	case model.RoleSystem:
		entry.Role = continuo.System
	default:
		if e.Author != "" {
			entry.Author = &continuo.Author{AgentName: e.Author}
		}
		if m.ReasoningContent != "" {
			entry.Reasoning = &continuo.Reasoning{Text: m.ReasoningContent}
		}
		for _, call := range m.ToolCalls {
			entry.ToolCalls = append(entry.ToolCalls, continuo.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: string(call.Function.Arguments)})
		}
	}
	return []continuo.Entry{entry}
}

// textOf is what is shown of a message.
func textOf(m model.Message) string {
	var texts []string
	if m.Content != "" {
		texts = append(texts, m.Content)
	}
	for _, part := range m.ContentParts {
		if part.Text != nil {
			texts = append(texts, *part.Text)
		} else {
			texts = append(texts, fmt.Sprintf("[%s]", part.Type))
		}
	}
	return strings.Join(texts, "\n")
}

// read reads a conversation as a session, with the states of its app and user, and of it what is wanted.
func (s *Service) read(ctx context.Context, conversation continuo.Conversation, wanted *session.Options) (*session.Session, error) {
	sess, err := s.fold(ctx, conversation)
	if err != nil {
		return nil, err
	}
	shared, err := s.shared(ctx, session.UserKey{AppName: sess.AppName, UserID: sess.UserID})
	if err != nil {
		return nil, err
	}
	for name, value := range shared {
		sess.SetState(name, value)
	}
	if wanted.ListSessionOnlyMeta {
		sess.Events, sess.Tracks = []event.Event{}, nil
		return sess, nil
	}
	sess.ApplyEventFiltering(session.WithEventNum(wanted.EventNum), session.WithEventTime(wanted.EventTime))
	for _, track := range sess.Tracks {
		if !wanted.EventTime.IsZero() {
			track.Events = slices.DeleteFunc(track.Events, func(e session.TrackEvent) bool { return e.Timestamp.Before(wanted.EventTime) })
		}
		if wanted.EventNum > 0 {
			track.Events = track.Events[max(len(track.Events)-wanted.EventNum, 0):]
		}
	}
	return sess, nil
}

// fold is the session that the entries of a conversation add up to.
func (s *Service) fold(ctx context.Context, conversation continuo.Conversation) (*session.Session, error) {
	var known about
	if err := json.Unmarshal(conversation.Metadata, &known); err != nil {
		return nil, fmt.Errorf("trpc: metadata of %s: %w", conversation.ID, err)
	}
	sess := session.NewSession(known.App, conversation.UserID, known.Session, session.WithSessionCreatedAt(conversation.CreatedAt))
	for entry, err := range s.log.ReadShared(ctx, conversation, continuo.Range{}) {
		if err == nil {
			err = add(sess, entry)
		}
		if err != nil {
			return nil, fmt.Errorf("trpc: session %s: %w", known.Session, err)
		}
	}
	sess.UpdatedAt = conversation.UpdatedAt
	return sess, nil
}

// add adds an entry to a session.
func add(sess *session.Session, entry *continuo.Entry) error {
	data := entry.Vendor[vendor]
	if data == nil { // it belongs to the event before it, or was redacted
		return nil
	}
	var own form
	if err := json.Unmarshal(data, &own); err != nil {
		return fmt.Errorf("entry %d: %w", entry.Seq, err)
	}
	for name, value := range own.State {
		sess.SetState(name, value)
	}
	switch {
	case own.Event != nil:
		if own.Text {
			own.Event.Choices[0].Message.Content = entry.Content.String()
		}
		sess.Events = append(sess.Events, *own.Event)
		sess.ApplyEventStateDelta(own.Event)
	case own.Track != nil:
		return sess.AppendTrackEvent(own.Track)
	case own.Summary != nil:
		sess.Summaries[own.Summary.FilterKey] = own.Summary.Summary
	}
	return nil
}

// inWindow reports whether an event has a text of one of the roles, of any for none; calls of tools have none.
func inWindow(e *event.Event, roles []model.Role) bool {
	if e.Response == nil || len(e.Choices) == 0 {
		return false
	}
	m := e.Choices[0].Message
	role := m.Role
	switch {
	case m.ToolID != "":
		role = model.RoleTool
	case role == "":
		role = model.RoleAssistant
	}
	return len(m.ToolCalls) == 0 && strings.TrimSpace(textOf(m)) != "" && (len(roles) == 0 || slices.Contains(roles, role))
}
