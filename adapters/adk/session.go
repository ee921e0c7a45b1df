package adk

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/adk/v2/session"
)

// stored is a session that was read, with what has been appended through it since.
type stored struct {
	app, user, id string
	conversation  string

	mu      sync.RWMutex
	events  []*session.Event
	state   map[string]any
	updated time.Time
}

var _ session.Session = (*stored)(nil)

// ID returns the session's id.
func (s *stored) ID() string { return s.id }

// AppName returns the app's name.
func (s *stored) AppName() string { return s.app }

// UserID returns the user's id.
func (s *stored) UserID() string { return s.user }

// State returns the state, which Set changes for this value only: what lasts is in the StateDelta of an event.
func (s *stored) State() session.State { return state{s} }

// Events returns the events.
func (s *stored) Events() session.Events {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return events(slices.Clip(s.events))
}

// LastUpdateTime returns the time of the newest event.
func (s *stored) LastUpdateTime() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.updated
}

// add adds an event that was stored, and the state that came with it, the temporary one too.
func (s *stored) add(event *session.Event, delta map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events, s.updated = append(s.events, event), event.Timestamp
	maps.Copy(s.state, delta)
}

// state is a session's state.
type state struct{ of *stored }

// Get returns the value of a key.
func (s state) Get(key string) (any, error) {
	s.of.mu.RLock()
	defer s.of.mu.RUnlock()
	value, ok := s.of.state[key]
	if !ok {
		return nil, session.ErrStateKeyNotExist
	}
	return value, nil
}

// Set sets the value of a key.
func (s state) Set(key string, value any) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.state[key] = value
	return nil
}

// All yields the keys and their values.
func (s state) All() iter.Seq2[string, any] {
	s.of.mu.RLock()
	defer s.of.mu.RUnlock()
	return maps.All(maps.Clone(s.of.state))
}

// events is a list of events.
type events []*session.Event

// All yields the events in their order.
func (e events) All() iter.Seq[*session.Event] { return slices.Values(e) }

// Len returns their number.
func (e events) Len() int { return len(e) }

// At returns an event; nil where there is none.
func (e events) At(i int) *session.Event {
	if i < 0 || i >= len(e) {
		return nil
	}
	return e[i]
}
