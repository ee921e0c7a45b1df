// Package adk makes a log of Continuo the session service of the Agent Development Kit for Go (google.golang.org/adk/v2).
//
// A session is a conversation, and an event is one or more of its entries: messages, calls and results are ordinary entries,
// which the inspector shows and a search finds. The event itself is kept beside the first of them, so that ADK gets back
// what it gave. What no model could be shown at its place is a hidden record.
//
// The state of a session is what its events say. The states of apps and users are conversations of the kind side, whose
// newest entry has the state. All of it works in several processes that share a store.
//
// Pitfalls: a redacted entry loses its event, and the state that the event brought; values of states are JSON values after
// a read, so that an int becomes a float64.
package adk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/adk/v2/session"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

// Options configures a service. The zero value works.
type Options struct {
	// Project is the project of the conversations. Default continuo.DefaultProject.
	Project string
}

// Service is a session.Service over a log. It is safe for concurrent use.
type Service struct {
	log     *continuo.Log
	project string
}

var _ session.Service = (*Service)(nil)

// New makes a service over a log, whose store the caller closes.
func New(log *continuo.Log, options Options) *Service {
	return &Service{log: log, project: cmp.Or(options.Project, continuo.DefaultProject)}
}

// vendor is the name under which entries have their events.
const vendor = "adk"

// about is the metadata of a session's conversation.
type about struct {
	App     string         `json:"adk_app"`
	Session string         `json:"adk_session"`
	State   map[string]any `json:"adk_state,omitempty"` // that the session began with
}

// Create creates a session. It fails when the app and the user have one with the id.
func (s *Service) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	if req.AppName == "" || req.UserID == "" {
		return nil, fmt.Errorf("adk: app name and user id are required, got %q and %q", req.AppName, req.UserID)
	}
	id := cmp.Or(req.SessionID, s.log.NewID("session"))
	state, err := asJSON(req.State)
	if err != nil {
		return nil, err
	}
	app, user, own := split(state)
	metadata, err := json.Marshal(about{App: req.AppName, Session: id, State: own})
	if err != nil {
		return nil, err
	}
	made, err := s.log.Create(ctx, continuo.Conversation{
		ProjectID: s.project, UserID: req.UserID, Key: sessionKey(req.AppName, req.UserID, id), Title: id, ActiveMode: continuo.ModeAgent, Metadata: metadata,
	})
	if errors.Is(err, continuo.ErrExists) {
		return nil, fmt.Errorf("adk: session %s already exists: %w", id, err)
	}
	if err != nil {
		return nil, err
	}
	shared, err := s.changeShared(ctx, req.AppName, req.UserID, app, user)
	if err != nil {
		return nil, err
	}
	maps.Copy(shared, own)
	return &session.CreateResponse{Session: &stored{app: req.AppName, user: req.UserID, id: id, conversation: made.ID, state: shared, updated: made.UpdatedAt}}, nil
}

func sessionKey(app, user, id string) string { return mirror.Key("adk", app, user, id) }

// find finds the conversation of a session.
func (s *Service) find(ctx context.Context, app, user, id string) (continuo.Conversation, error) {
	if app == "" || user == "" || id == "" {
		return continuo.Conversation{}, fmt.Errorf("adk: app name, user id and session id are required, got %q, %q and %q", app, user, id)
	}
	found, err := s.log.Find(ctx, continuo.Scope{ProjectID: s.project, UserID: user}, sessionKey(app, user, id))
	if err != nil {
		return found, fmt.Errorf("adk: session %s: %w", id, err)
	}
	return found, nil
}

// Get returns a session with its events.
func (s *Service) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	conversation, err := s.find(ctx, req.AppName, req.UserID, req.SessionID)
	if err != nil {
		return nil, err
	}
	shared, err := s.shared(ctx, req.AppName, req.UserID)
	if err != nil {
		return nil, err
	}
	found, err := s.read(ctx, conversation, shared)
	if err != nil {
		return nil, err
	}
	if req.NumRecentEvents > 0 {
		found.events = found.events[max(len(found.events)-req.NumRecentEvents, 0):]
	}
	if !req.After.IsZero() {
		found.events = slices.DeleteFunc(found.events, func(e *session.Event) bool { return e.Timestamp.Before(req.After) })
	}
	return &session.GetResponse{Session: found}, nil
}

// read reads a conversation as a session. Shared is the state of its app and user.
func (s *Service) read(ctx context.Context, conversation continuo.Conversation, shared map[string]any) (*stored, error) {
	var known about
	if err := json.Unmarshal(conversation.Metadata, &known); err != nil {
		return nil, fmt.Errorf("adk: metadata of %s: %w", conversation.ID, err)
	}
	found := &stored{app: known.App, user: conversation.UserID, id: known.Session, conversation: conversation.ID, state: maps.Clone(shared), updated: conversation.UpdatedAt}
	maps.Copy(found.state, known.State)
	for entry, err := range s.log.ReadShared(ctx, conversation, continuo.Range{}) {
		if err != nil {
			return nil, err
		}
		event, err := eventOf(entry)
		if err != nil {
			return nil, fmt.Errorf("adk: entry %d of %s: %w", entry.Seq, conversation.ID, err)
		}
		if event == nil {
			continue
		}
		_, _, own := split(event.Actions.StateDelta)
		maps.Copy(found.state, own)
		found.events, found.updated = append(found.events, event), event.Timestamp
	}
	return found, nil
}

// List returns the sessions of an app, of one user or of all, without their events.
func (s *Service) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	if req.AppName == "" {
		return nil, errors.New("adk: the app name is required")
	}
	query := continuo.ConversationQuery{ProjectID: s.project, UserID: req.UserID, Labels: map[string]string{"adk_app": req.AppName}, Limit: 100}
	answer := &session.ListResponse{Sessions: []session.Session{}}
	states := map[string]map[string]any{}
	for {
		page, err := s.log.Conversations(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, conversation := range page {
			user := conversation.UserID
			if states[user] == nil {
				if states[user], err = s.shared(ctx, req.AppName, user); err != nil {
					return nil, err
				}
			}
			found, err := s.read(ctx, conversation, states[user])
			if err != nil {
				return nil, err
			}
			found.events = nil
			answer.Sessions = append(answer.Sessions, found)
		}
		if len(page) < query.Limit {
			return answer, nil
		}
		last := page[len(page)-1]
		query.Before = continuo.ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
	}
}

// Delete deletes a session; one that does not exist is no error.
func (s *Service) Delete(ctx context.Context, req *session.DeleteRequest) error {
	conversation, err := s.find(ctx, req.AppName, req.UserID, req.SessionID)
	if err == nil {
		err = s.log.Delete(ctx, conversation.ID)
	}
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	return err
}

// AppendEvent appends an event to a session, without its temporary state. A partial event is not stored.
func (s *Service) AppendEvent(ctx context.Context, current session.Session, event *session.Event) error {
	switch {
	case current == nil:
		return errors.New("adk: the session is nil")
	case event == nil:
		return errors.New("adk: the event is nil")
	case event.Partial:
		return nil
	}
	own, known := current.(*stored)
	id := ""
	if known {
		id = own.conversation
	} else {
		conversation, err := s.find(ctx, current.AppName(), current.UserID(), current.ID())
		if err != nil {
			return err
		}
		id = conversation.ID
	}
	lasting := withoutTemporary(event)
	entries, form, err := entriesOf(lasting)
	if err != nil {
		return fmt.Errorf("adk: event %s: %w", event.ID, err)
	}
	app, user, _ := split(lasting.Actions.StateDelta)
	if _, err := s.changeShared(ctx, current.AppName(), current.UserID(), app, user); err != nil {
		return err
	}
	if _, err := mirror.Append(ctx, s.log, id, mirror.Message{Vendor: vendor, Own: form, Entries: entries}); err != nil {
		return fmt.Errorf("adk: append to session %s: %w", current.ID(), err)
	}
	if known {
		own.add(lasting, event.Actions.StateDelta)
	}
	return nil
}

// withoutTemporary is an event without the state that counts for its invocation only.
func withoutTemporary(event *session.Event) *session.Event {
	temporary := func(key string, _ any) bool { return strings.HasPrefix(key, session.KeyPrefixTemp) }
	lasting := *event
	lasting.Actions.StateDelta = maps.Clone(event.Actions.StateDelta)
	maps.DeleteFunc(lasting.Actions.StateDelta, temporary)
	return &lasting
}
