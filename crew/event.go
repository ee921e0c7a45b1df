package crew

import (
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// PartEvent is the PartType of the hidden entries that record what happens in a crew.
const PartEvent = "crew_event"

// Memory is what a role's turn leaves besides its words.
type Memory struct {
	Cursor  int64  // through which everything was shown to it; 0 where nothing was
	Session string // its agent's own id of its session; "" for none
}

// Begin makes the entry that a cycle begins with: what a person says. Before is how the crew stood; nil for a crew
// that has not been here. The caller adds the run's id.
func (c *Crew) Begin(runID string, message continuo.Content, author *continuo.Author, before *continuo.CrewState) continuo.Entry {
	s := NewState(c, runID)
	s.applyState(before)
	return continuo.Entry{
		Role: continuo.User, Content: message, Author: author, Mode: continuo.ModeAgent, RunID: runID, WorkflowID: continuo.CrewWorkflow(c.ID),
		RunEvent: &continuo.RunEvent{Kind: continuo.RunBegan, Workflow: c.Hash(), Crew: &s.Now},
	}
}

// TakeOver is how the crew stands after a cycle that began with another text of its file. A role's session goes on only
// where the role is who it was: its agent was told once.
func (c *Crew) TakeOver(s *State) *continuo.CrewState {
	now := s.Now.Clone()
	for i := range now.Roles {
		was, is := s.Crew.Role(now.Roles[i].Name), c.Role(now.Roles[i].Name)
		if was == nil || is == nil || was.Connector != is.Connector || was.Model != is.Model || was.SystemPrompt != is.SystemPrompt || !slices.Equal(s.Crew.members(), c.members()) {
			now.Roles[i].Session = ""
		}
	}
	return now
}

// member is a role as the others are told of it.
type member struct {
	name        string
	isModerator bool
}

func (c *Crew) members() (members []member) {
	for i := range c.Roles {
		members = append(members, member{c.Roles[i].DisplayName, c.Roles[i].IsModerator})
	}
	return members
}

// Says makes the entry of what a person says while a cycle is under way.
func (s *State) Says(message continuo.Content, author *continuo.Author) continuo.Entry {
	return continuo.Entry{
		Role: continuo.User, Content: message, Author: author, Mode: continuo.ModeAgent, RunID: s.RunID, WorkflowID: continuo.CrewWorkflow(s.Crew.ID),
	}
}

// Cue makes the entry that a role's turn begins with.
func (s *State) Cue(step Step) continuo.Entry {
	event := continuo.RunEvent{Kind: continuo.RunNodeBegan, Visit: step.Visit, Attempt: step.Attempt}
	cue := s.event(step.Role.Name, event, step.Role.DisplayName+" is asked.")
	cue.Author = step.Role.Author()
	return cue
}

// Conclude puts the event of a turn that was answered on its answer, and who speaks.
func (s *State) Conclude(step Step, answer *continuo.Entry, memory Memory) {
	answer.Author = step.Role.Author()
	concluded := s.Concluded(step, answer, memory)
	answer.RunEvent, answer.RunID, answer.WorkflowID, answer.NodeID = concluded.RunEvent, concluded.RunID, concluded.WorkflowID, concluded.NodeID
}

// Concluded makes the entry with the event of a turn whose answer stands in the log already.
func (s *State) Concluded(step Step, answer *continuo.Entry, memory Memory) continuo.Entry {
	event := continuo.RunEvent{Kind: continuo.RunNodeFinished, Visit: step.Visit, Attempt: step.Attempt}
	now := s.Now.Clone()
	role := now.Role(step.Role.Name)
	role.Cursor = max(role.Cursor, memory.Cursor)
	if memory.Session != "" {
		role.Session = memory.Session
	}
	if answer.IsPlaceholder() || answer.IsBlank() {
		event.Reason = passReason
	} else {
		role.Answers++
	}
	now.Next = s.after(step.Role)
	event.Crew = now
	return s.event(step.Role.Name, event, step.Role.DisplayName+" has answered.")
}

// Fail makes the entry of a turn in which a role did not answer. Its cursor stays where it is.
func (s *State) Fail(step Step, reason string) continuo.Entry {
	now := s.Now.Clone()
	now.Next = s.after(step.Role)
	event := continuo.RunEvent{Kind: continuo.CrewRoleFailed, Visit: step.Visit, Attempt: step.Attempt, Reason: reason, Crew: now}
	return s.event(step.Role.Name, event, fmt.Sprintf("%s did not answer: %s", step.Role.DisplayName, reason))
}

// after is the role whose turn follows another's.
func (s *State) after(role *Role) string {
	for i := range s.Crew.Roles {
		if s.Crew.Roles[i].Name == role.Name {
			return s.Crew.Roles[(i+1)%len(s.Crew.Roles)].Name
		}
	}
	return s.Crew.Roles[0].Name
}

// Halt makes the entry that stops a cycle until somebody resumes it or says something.
func (s *State) Halt(reason string) continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunHalted, Reason: reason}, "The crew was stopped: "+reason)
}

// BreakOff makes the entry of a cycle that cannot go on.
func (s *State) BreakOff(reason string) continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunBrokeOff, Reason: reason}, "The crew's cycle broke off: "+reason)
}

// Resume makes the entry that lets a cycle go on that failed or was stopped.
func (s *State) Resume() continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunResumed}, "The crew goes on.")
}

// Reset makes the entry behind which the roles begin anew: they see nothing that stands before it, and remember
// nothing. At is the newest seq that stands before it.
func (s *State) Reset(at int64) continuo.Entry {
	before := s.Now.Clone()
	for i := range before.Roles {
		if role := &before.Roles[i]; !s.HasNews(role.Name) {
			role.Cursor = at // it has seen everything
		}
	}
	before.Before = newestOf(before.Before, maxResets-1)
	now := &continuo.CrewState{Since: at, Before: before}
	for i := range s.Now.Roles {
		now.Roles = append(now.Roles, continuo.CrewRole{Name: s.Now.Roles[i].Name, Cursor: at})
	}
	return s.event("", continuo.RunEvent{Kind: continuo.CrewReset, Crew: now}, fmt.Sprintf("The crew begins anew. What was said up to entry %d is kept, and can be restored.", at))
}

// maxResets bounds how many resets can be taken back, one after another: each event of a crew holds them all.
const maxResets = 16

// newestOf copies how a crew stood before so many resets.
func newestOf(before *continuo.CrewState, most int) *continuo.CrewState {
	if before == nil || most < 1 {
		return nil
	}
	kept := before.Clone()
	kept.Before = newestOf(before.Before, most-1)
	return kept
}

// Restore makes the entry that takes the newest reset back; ok is false where there is none. What the roles have
// answered since counts, but for a role that had not seen everything before the reset: it sees what stands behind
// its cursor of then.
func (s *State) Restore() (entry continuo.Entry, ok bool) {
	before := s.Now.Before.Clone()
	if before == nil {
		return continuo.Entry{}, false
	}
	for i := range before.Roles {
		role := &before.Roles[i]
		since := s.Now.Role(role.Name)
		if since == nil {
			continue
		}
		role.Answers += since.Answers
		role.Session = "" // it has forgotten what stands before
		if role.Cursor >= s.Now.Since {
			role.Cursor = max(role.Cursor, since.Cursor)
		}
	}
	for i := range s.Now.Roles {
		if came := &s.Now.Roles[i]; before.Role(came.Name) == nil {
			before.Roles = append(before.Roles, continuo.CrewRole{Name: came.Name, Answers: came.Answers})
		}
	}
	before.Next = s.Now.Next
	return s.event("", continuo.RunEvent{Kind: continuo.CrewRestored, Crew: before}, "The crew sees again what was said before it began anew."), true
}

// Noted makes the event of a summary or of a role's notes out of the entry that holds them.
func (s *State) Noted(entry continuo.Entry) continuo.Entry {
	entry.NodeID, entry.RunID, entry.WorkflowID, entry.Mode = entry.Summary.Role, s.RunID, continuo.CrewWorkflow(s.Crew.ID), continuo.ModeAgent
	entry.RunEvent = &continuo.RunEvent{Kind: continuo.CrewNoted}
	return entry
}

// event makes an entry for people and for the crew's own record.
func (s *State) event(node string, event continuo.RunEvent, text string) continuo.Entry {
	return continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: PartEvent, Content: continuo.Text(text), Mode: continuo.ModeAgent,
		RunID: s.RunID, WorkflowID: continuo.CrewWorkflow(s.Crew.ID), NodeID: node, RunEvent: &event,
	}
}
