package continuo

import "strings"

// Placeholder is a role's answer when it has nothing to add. It is kept in the log and shown to no role.
const Placeholder = "....."

// crewPrefix precedes a crew's name in the WorkflowID of its cycles; no workflow's id has a colon.
const crewPrefix = "crew:"

// CrewWorkflow returns the WorkflowID of the cycles of a crew.
func CrewWorkflow(crewID string) string { return crewPrefix + crewID }

// CrewOf returns the id of the crew whose cycle a WorkflowID names; ok is false for a workflow's id.
func CrewOf(workflowID string) (crewID string, ok bool) {
	return strings.CutPrefix(workflowID, crewPrefix)
}

// CrewState is the state of a crew in a conversation. Each event of a cycle that changes the state holds all of it, so
// the newest event is enough to continue on any machine.
type CrewState struct {
	// Next is the name of the role whose turn is next.
	Next  string     `json:"next,omitempty"`
	Roles []CrewRole `json:"roles"` // in the order of the crew's file
	// Since is the seq of the newest reset: roles are shown no entry up to it. 0: no reset.
	Since int64 `json:"since,omitempty"`
	// Before is the crew's state before the newest reset that was not undone; nil for none.
	Before *CrewState `json:"before,omitempty"`
}

// CrewRole is the state of one role.
type CrewRole struct {
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
func (s *CrewState) Role(name string) *CrewRole {
	for i := range s.Roles {
		if s.Roles[i].Name == name {
			return &s.Roles[i]
		}
	}
	return nil
}

// Clone returns a deep copy of a state.
func (s *CrewState) Clone() *CrewState {
	if s == nil {
		return nil
	}
	clone := *s
	clone.Roles = append([]CrewRole{}, s.Roles...)
	return &clone
}

// Summary describes an entry whose content is a summary of earlier entries. Those entries do not change.
type Summary struct {
	// From and Through are the first and the last seq that the summary covers. Entries that an earlier summary covers
	// already are covered with that summary's text.
	From    int64 `json:"from"`
	Through int64 `json:"through"`
	// Role is the role of a crew whose notes or catch-up this is; "" for a summary that every reader shares.
	Role string `json:"role,omitempty"`
	// Decisions are the key decisions in a role's notes.
	Decisions []string `json:"decisions,omitempty"`
	// Messages is how many messages a catch-up covers; 0 for every other summary, and where more than the counting
	// limit.
	Messages int `json:"messages,omitempty"`
	// By names the model that wrote the summary, or the built-in summarizer ("extractive").
	By string `json:"by"`
}

// The PartTypes of summaries: hidden entries with a Summary. A catch-up covers messages that were too many to show to a
// role of a crew at once, so that it was never shown them.
const (
	PartSummary = "summary"
	PartNotes   = "notes"
	PartCatchUp = "catch_up"
)

// IsBlank reports whether the entry has no tool calls and shows nothing to a reader.
func (e *Entry) IsBlank() bool { return !e.HasCalls() && e.Content.IsBlank() }

// IsPlaceholder reports whether the entry is a role's placeholder (it has nothing to add), or the beginning of one in
// an answer that was cut off.
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
