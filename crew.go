package continuo

import "strings"

// Placeholder is what a role of a crew says when it has nothing to add. It is kept in the log, and shown to no role.
const Placeholder = "....."

// crewPrefix stands before a crew's name in the WorkflowID of its cycles; no workflow's id has a colon.
const crewPrefix = "crew:"

// CrewWorkflow is the WorkflowID of the cycles of a crew.
func CrewWorkflow(crewID string) string { return crewPrefix + crewID }

// CrewOf returns the id of the crew whose cycle a WorkflowID names; ok is false for a workflow's.
func CrewOf(workflowID string) (crewID string, ok bool) {
	return strings.CutPrefix(workflowID, crewPrefix)
}

// CrewState is how a crew stands in a conversation. Each event of a cycle that changes it holds it whole, so that
// the newest one is all that it takes to go on, on any machine.
type CrewState struct {
	// Next is the name of the role whose turn is next.
	Next  string     `json:"next,omitempty"`
	Roles []CrewRole `json:"roles"` // in the order of the crew's file
	// Since is the seq of the newest reset: roles see nothing up to it. 0: everything.
	Since int64 `json:"since,omitempty"`
	// Before is how the crew stood before the newest reset that was not taken back; nil for none.
	Before *CrewState `json:"before,omitempty"`
}

// CrewRole is how a role stands.
type CrewRole struct {
	Name string `json:"name"`
	// Cursor is the seq through which everything was shown to the role and answered by it, but for what is never
	// shown to it. 0: nothing.
	Cursor int64 `json:"cursor"`
	// Answers counts what it has said, placeholders not counted.
	Answers int `json:"answers"`
	// Session is its agent's own id of the session that remembers what it was shown; "" for none.
	Session string `json:"session,omitempty"`
	// Notes is the seq of the entry with its newest notes; 0 for none.
	Notes int64 `json:"notes,omitempty"`
}

// Role finds a role's state by name; nil when the crew has had none of that name.
func (s *CrewState) Role(name string) *CrewRole {
	for i := range s.Roles {
		if s.Roles[i].Name == name {
			return &s.Roles[i]
		}
	}
	return nil
}

// Clone copies a state, so that changes of the copy leave it alone.
func (s *CrewState) Clone() *CrewState {
	if s == nil {
		return nil
	}
	clone := *s
	clone.Roles = append([]CrewRole{}, s.Roles...)
	return &clone
}

// Summary says what an entry stands for whose content is a summary. The entries themselves stay as they are.
type Summary struct {
	// From and Through are the first and the last seq that it stands for. Of entries between them that a summary
	// before it stood for, it says what that one said.
	From    int64 `json:"from"`
	Through int64 `json:"through"`
	// Role is whose notes or catch-up it is, in a crew; "" for a summary that is everybody's.
	Role string `json:"role,omitempty"`
	// Decisions are what was decided, of a role's notes.
	Decisions []string `json:"decisions,omitempty"`
	// Messages is how many messages a catch-up stands for; 0 for every other summary, and for more than were counted.
	Messages int `json:"messages,omitempty"`
	// By names the model that made it, or the built-in summarizer ("extractive").
	By string `json:"by"`
}

// The PartTypes of summaries: a hidden entry with a Summary. A catch-up stands for messages that a role of a crew was
// never shown, because too much was new to it at once.
const (
	PartSummary = "summary"
	PartNotes   = "notes"
	PartCatchUp = "catch_up"
)

// IsBlank reports whether the entry calls nothing and says nothing that anybody could see.
func (e *Entry) IsBlank() bool { return !e.HasCalls() && e.Content.IsBlank() }

// IsPlaceholder reports whether the entry is a role's word that it has nothing to add, or the beginning of that word where
// the answer broke off.
func (e *Entry) IsPlaceholder() bool {
	if e.Role != Assistant || e.Author == nil || len(e.ToolCalls) > 0 {
		return false
	}
	text := strings.TrimSpace(e.Content.String())
	if e.Error != nil {
		return text != "" && strings.Trim(text, ".") == ""
	}
	return text == Placeholder
}
