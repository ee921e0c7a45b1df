// Package trpc makes a log of Continuo the session service of tRPC-Agent-Go (trpc.group/trpc-go/trpc-agent-go).
//
// A session is a conversation. An event with a message is one or more of its entries: messages, calls and results are
// ordinary entries, which the inspector shows and a search finds. The event itself is kept beside the first of them, so that
// tRPC-Agent-Go gets back what it gave. All else of a session (changes of its state, tracks, summaries) is hidden records of
// the same conversation, and a session that is read is what all of them add up to. What no model could be shown at its place
// is a hidden record, too.
//
// The states of apps and users are conversations of the kind side, whose newest entry has the state. All of it works in
// several processes that share a store. A redacted entry loses its event, and the state that the event brought.
package trpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/session"
	"trpc.group/trpc-go/trpc-agent-go/session/summary"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

// Options configures a service. The zero value works.
type Options struct {
	// Project is the project of the conversations. Default continuo.DefaultProject.
	Project string
	// Summarizer makes the summaries of sessions. Default none: no summaries are made.
	Summarizer summary.SessionSummarizer
}

// Service is a session.Service over a log, with tracks and event windows. It is safe for concurrent use.
type Service struct {
	log        *continuo.Log
	project    string
	summarizer summary.SessionSummarizer
}

var (
	_ session.Service       = (*Service)(nil)
	_ session.TrackService  = (*Service)(nil)
	_ session.WindowService = (*Service)(nil)
)

// New makes a service over a log, whose store the caller closes.
func New(log *continuo.Log, options Options) *Service {
	return &Service{log: log, project: cmp.Or(options.Project, continuo.DefaultProject), summarizer: options.Summarizer}
}

// vendor is the name under which entries have what is not in them.
const vendor = "trpc"

// about is the metadata of a session's conversation.
type about struct {
	App     string `json:"trpc_app"`
	Session string `json:"trpc_session"`
}

func (s *Service) conversation(key session.Key) continuo.Conversation {
	return continuo.Conversation{
		ProjectID: s.project, UserID: key.UserID, Key: mirror.Key("trpc", key.AppName, key.UserID, key.SessionID), Title: key.SessionID, ActiveMode: continuo.ModeAgent,
	}
}

func keyOf(sess *session.Session) session.Key {
	return session.Key{AppName: sess.AppName, UserID: sess.UserID, SessionID: sess.ID}
}

// CreateSession creates a session, with an id of its own where the key has none. It fails with continuo.ErrExists when the app
// and the user have one with the id.
func (s *Service) CreateSession(ctx context.Context, key session.Key, state session.StateMap, _ ...session.Option) (*session.Session, error) {
	if err := key.CheckUserKey(); err != nil {
		return nil, err
	}
	if key.SessionID == "" {
		key.SessionID = s.log.NewID("session")
	}
	metadata, err := json.Marshal(about{App: key.AppName, Session: key.SessionID})
	if err != nil {
		return nil, err
	}
	begin := s.conversation(key)
	begin.Metadata = metadata
	var first []continuo.Entry
	if len(state) > 0 {
		own, err := json.Marshal(form{State: state})
		if err != nil {
			return nil, err
		}
		first = append(first, mirror.Message{Vendor: vendor, Own: own}.Record())
	}
	made, err := s.log.Import(ctx, begin, first)
	if err != nil {
		return nil, fmt.Errorf("trpc: create session %s: %w", key.SessionID, err)
	}
	return s.read(ctx, made, &session.Options{})
}

// GetSession returns a session; nil where there is none.
func (s *Service) GetSession(ctx context.Context, key session.Key, options ...session.Option) (*session.Session, error) {
	if err := key.CheckSessionKey(); err != nil {
		return nil, err
	}
	wanted := applied(options)
	if err := session.ValidateGetSessionOptions(wanted, false); err != nil {
		return nil, err
	}
	conversation, err := mirror.Find(ctx, s.log, s.conversation(key))
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil //nolint:nilnil // as the interface wants it
	}
	if err != nil {
		return nil, fmt.Errorf("trpc: session %s: %w", key.SessionID, err)
	}
	return s.read(ctx, conversation, wanted)
}

func applied(options []session.Option) *session.Options {
	wanted := &session.Options{}
	for _, option := range options {
		option(wanted)
	}
	return wanted
}

// ListSessions returns the sessions of a user, those that changed last first.
func (s *Service) ListSessions(ctx context.Context, user session.UserKey, options ...session.Option) ([]*session.Session, error) {
	if err := user.CheckUserKey(); err != nil {
		return nil, err
	}
	wanted := applied(options)
	if err := session.ValidateListSessionsOptions(wanted); err != nil {
		return nil, err
	}
	query := continuo.ConversationQuery{ProjectID: s.project, UserID: user.UserID, Labels: map[string]string{"trpc_app": user.AppName}, Limit: 100}
	skip, left := 0, -1
	if page := wanted.ListSessionPage; page != nil {
		skip, left = page.Offset, page.Limit
	}
	sessions := []*session.Session{}
	for {
		page, err := s.log.Conversations(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("trpc: sessions of %s: %w", user.UserID, err)
		}
		for _, conversation := range page {
			if skip > 0 {
				skip--
				continue
			}
			if len(sessions) == left {
				return sessions, nil
			}
			found, err := s.read(ctx, conversation, wanted)
			if err != nil {
				return nil, err
			}
			sessions = append(sessions, found)
		}
		if len(page) < query.Limit {
			return sessions, nil
		}
		last := page[len(page)-1]
		query.Before = continuo.ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
	}
}

// DeleteSession deletes a session; one that does not exist is no error.
func (s *Service) DeleteSession(ctx context.Context, key session.Key, _ ...session.Option) error {
	if err := key.CheckSessionKey(); err != nil {
		return err
	}
	return mirror.Remove(ctx, s.log, s.conversation(key))
}

// AppendEvent appends an event to a session, and then to the given value. Of a partial event only the change of state is
// stored.
func (s *Service) AppendEvent(ctx context.Context, sess *session.Session, e *event.Event, options ...session.Option) error {
	if sess == nil {
		return session.ErrNilSession
	}
	if e == nil {
		return errors.New("trpc: the event is nil")
	}
	kept, err := mirrored(e)
	if err != nil {
		return fmt.Errorf("trpc: event %s: %w", e.ID, err)
	}
	if err := s.append(ctx, sess, kept); err != nil {
		return err
	}
	sess.UpdateUserSession(e, options...)
	return nil
}

// append appends to a session's conversation; a message that keeps nothing only checks that there is one.
func (s *Service) append(ctx context.Context, sess *session.Session, message mirror.Message) error {
	key := keyOf(sess)
	if err := key.CheckSessionKey(); err != nil {
		return err
	}
	conversation, err := mirror.Find(ctx, s.log, s.conversation(key))
	if err == nil && message.Own != nil {
		_, err = mirror.Append(ctx, s.log, conversation.ID, message)
	}
	if err != nil {
		return fmt.Errorf("trpc: append to session %s: %w", key.SessionID, err)
	}
	return nil
}

// record appends a hidden record to a session.
func (s *Service) record(ctx context.Context, sess *session.Session, what form) error {
	own, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return s.append(ctx, sess, mirror.Message{Vendor: vendor, Own: own})
}

// AppendTrackEvent appends an event of a track to a session, and then to the given value.
func (s *Service) AppendTrackEvent(ctx context.Context, sess *session.Session, e *session.TrackEvent, options ...session.Option) error {
	if sess == nil {
		return session.ErrNilSession
	}
	if e == nil {
		return errors.New("trpc: the event is nil")
	}
	if err := s.record(ctx, sess, form{Track: e}); err != nil {
		return err
	}
	return sess.AppendTrackEvent(e, options...)
}

// UpdateSessionState changes the state of a session without an event.
func (s *Service) UpdateSessionState(ctx context.Context, key session.Key, state session.StateMap) error {
	for name := range state {
		if strings.HasPrefix(name, session.StateAppPrefix) || strings.HasPrefix(name, session.StateUserPrefix) {
			return fmt.Errorf("trpc: state of session %s: %s is of an app or a user, which UpdateAppState and UpdateUserState change", key.SessionID, name)
		}
	}
	return s.record(ctx, &session.Session{AppName: key.AppName, UserID: key.UserID, ID: key.SessionID}, form{State: state})
}

// GetEventWindow returns the events around one, of all that a session has.
func (s *Service) GetEventWindow(ctx context.Context, req session.EventWindowRequest) (*session.EventWindow, error) {
	switch err := req.Key.CheckSessionKey(); {
	case err != nil:
		return nil, err
	case strings.TrimSpace(req.AnchorEventID) == "":
		return nil, errors.New("trpc: an event window needs the id of an event")
	case req.Before < 0 || req.After < 0:
		return nil, fmt.Errorf("trpc: an event window has %d events before and %d after", req.Before, req.After)
	}
	var all []event.Event
	conversation, err := mirror.Find(ctx, s.log, s.conversation(req.Key))
	if err == nil {
		var sess *session.Session
		if sess, err = s.fold(ctx, conversation); err == nil {
			all = slices.DeleteFunc(sess.Events, func(e event.Event) bool { return !inWindow(&e, req.Roles) })
		}
	}
	if err != nil && !errors.Is(err, continuo.ErrNotFound) {
		return nil, err
	}
	at := slices.IndexFunc(all, func(e event.Event) bool { return e.ID == req.AnchorEventID })
	if at < 0 {
		return nil, fmt.Errorf("%w: %s", session.ErrEventWindowAnchorNotFound, req.AnchorEventID)
	}
	window := &session.EventWindow{SessionKey: req.Key, AnchorEventID: req.AnchorEventID}
	for _, e := range all[max(at-req.Before, 0):min(at+req.After+1, len(all))] {
		window.Entries = append(window.Entries, session.EventWindowEntry{Event: e, CreatedAt: e.Timestamp})
	}
	return window, nil
}

// Close does nothing: the caller closes the store.
func (s *Service) Close() error { return nil }
