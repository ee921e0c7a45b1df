package crew

import (
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Snapshot is the state of a crew in a conversation. Each event of a cycle that changes the state holds all of it, so
// the newest event is enough to continue on any machine: see [ReadSnapshot].
type Snapshot struct {
	// Next is the name of the role whose turn is next.
	Next  string      `json:"next,omitempty"`
	Roles []RoleState `json:"roles"` // in the order of the crew's file
	// Since is the seq of the newest reset: roles are shown no entry up to it. 0: no reset.
	Since int64 `json:"since,omitempty"`
	// Before is the crew's state before the newest reset that was not undone; nil for none.
	Before *Snapshot `json:"before,omitempty"`
}

// RoleState is the state of one role.
type RoleState struct {
	Name string `json:"name"`
	// Cursor is the seq through which every entry was shown to the role and answered by it, except entries that are
	// never shown to it. 0: none.
	Cursor int64 `json:"cursor"`
	// Answers counts the role's answers without placeholders.
	Answers int `json:"answers"`
	// Session is the agent's own id of the session that holds what the role was shown; "" for none.
	Session string `json:"session,omitempty"`
	// Notes is the seq of the role's newest notes; 0 for none.
	Notes int64 `json:"notes,omitempty"`
}

// Role finds a role's state by name; nil when the crew has had no role of that name.
func (s *Snapshot) Role(name string) *RoleState {
	for i := range s.Roles {
		if s.Roles[i].Name == name {
			return &s.Roles[i]
		}
	}
	return nil
}

// Clone returns a deep copy of a state.
func (s *Snapshot) Clone() *Snapshot {
	if s == nil {
		return nil
	}
	clone := *s
	clone.Roles = append([]RoleState{}, s.Roles...)
	return &clone
}

// encode is the form of a snapshot in a [continuo.RunEvent].
func (s *Snapshot) encode() json.RawMessage { return rawjson.MustMarshal(s) }

// ReadSnapshot reads the crew's state from an event; nil when the event does not change it.
func ReadSnapshot(event *continuo.RunEvent) (*Snapshot, error) {
	if event == nil || event.Crew == nil {
		return nil, nil
	}
	var found *Snapshot
	if err := json.Unmarshal(event.Crew, &found); err != nil {
		return nil, fmt.Errorf("the state of the crew: %w", err)
	}
	return found, nil
}
