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
