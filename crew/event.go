package crew

import (
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// PartEvent is the PartType of the hidden entries that record a crew's events.
const PartEvent = "crew_event"

// Memory is the new cursor and session of a role after its turn.
type Memory struct {
	Cursor  int64  // the seq through which everything was shown to it; 0 for none
	Session string // the session's id in the role's agent; "" for none
}

// Begin makes the entry that begins a cycle: a person's message. Before is the crew's state so far; nil for a crew
// that is new in the conversation. The caller adds the run's id.
func (c *Crew) Begin(runID string, message continuo.Content, author *continuo.Author, before *Snapshot) continuo.Entry {
	s := NewState(c, runID)
	s.applyState(before)
	return continuo.Entry{
		Role: continuo.User, Content: message, Author: author, Mode: continuo.ModeAgent, RunID: runID, WorkflowID: continuo.CrewWorkflow(c.ID),
		RunEvent: &continuo.RunEvent{Kind: continuo.RunBegan, Workflow: c.Hash(), Crew: s.Now.encode()},
	}
}

// TakeOver is the crew's state after a cycle that began with another text of its file. A role keeps its session only
// if its connector, model and system prompt and the members of the crew are unchanged, because its agent was
// sent these once.
func (c *Crew) TakeOver(s *State) *Snapshot {
	now := s.Now.Clone()
	for i := range now.Roles {
		was, is := s.Crew.Role(now.Roles[i].Name), c.Role(now.Roles[i].Name)
		if was == nil || is == nil || was.Connector != is.Connector || was.Model != is.Model || was.SystemPrompt != is.SystemPrompt || !slices.Equal(s.Crew.members(), c.members()) {
			now.Roles[i].Session = ""
		}
	}
	return now
}

// member is a role as the prompts of the other roles describe it.
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

// MessageEntry makes the entry of a person's message during a cycle.
func (s *State) MessageEntry(message continuo.Content, author *continuo.Author) continuo.Entry {
	return continuo.Entry{
		Role: continuo.User, Content: message, Author: author, Mode: continuo.ModeAgent, RunID: s.RunID, WorkflowID: continuo.CrewWorkflow(s.Crew.ID),
	}
}

// Cue makes the first entry of a role's turn.
func (s *State) Cue(step Step) continuo.Entry {
	event := continuo.RunEvent{Kind: continuo.RunNodeBegan, Visit: step.Visit, Attempt: step.Attempt}
	cue := s.event(step.Role.Name, event, step.Role.DisplayName+" is asked.")
	cue.Author = step.Role.Author()
	return cue
}

// Conclude adds the event of an answered turn, and the author, to the turn's answer.
func (s *State) Conclude(step Step, answer *continuo.Entry, memory Memory) {
	answer.Author = step.Role.Author()
	concluded := s.Concluded(step, answer, memory)
	answer.RunEvent, answer.RunID, answer.WorkflowID, answer.NodeID = concluded.RunEvent, concluded.RunID, concluded.WorkflowID, concluded.NodeID
}

// Concluded makes a separate entry with the event of a turn whose answer is already in the log.
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
	event.Crew = now.encode()
	return s.event(step.Role.Name, event, step.Role.DisplayName+" has answered.")
}

// Fail makes the entry of a turn in which a role did not answer. The role's cursor does not move.
func (s *State) Fail(step Step, reason string) continuo.Entry {
	now := s.Now.Clone()
	now.Next = s.after(step.Role)
	event := continuo.RunEvent{Kind: continuo.CrewRoleFailed, Visit: step.Visit, Attempt: step.Attempt, Reason: reason, Crew: now.encode()}
	return s.event(step.Role.Name, event, fmt.Sprintf("%s did not answer: %s", step.Role.DisplayName, reason))
}

// after is the role that follows another.
func (s *State) after(role *Role) string {
	for i := range s.Crew.Roles {
		if s.Crew.Roles[i].Name == role.Name {
			return s.Crew.Roles[(i+1)%len(s.Crew.Roles)].Name
		}
	}
	return s.Crew.Roles[0].Name
}

// Halt makes the entry that stops a cycle until a person resumes it or sends a message.
func (s *State) Halt(reason string) continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunEventStopped, Reason: reason}, "The crew was stopped: "+reason)
}

// BreakOff makes the entry of a cycle that cannot continue.
func (s *State) BreakOff(reason string) continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunEventFailed, Reason: reason}, "The crew's cycle failed: "+reason)
}

// Resume makes the entry that resumes a cycle that failed or was stopped.
func (s *State) Resume() continuo.Entry {
	return s.event("", continuo.RunEvent{Kind: continuo.RunResumed}, "The crew was resumed.")
}

// Reset makes the entry that resets the crew: the roles see no earlier entry, and remember nothing. At is the seq of
// the last entry before it.
func (s *State) Reset(at int64) continuo.Entry {
	before := s.Now.Clone()
	for i := range before.Roles {
		if role := &before.Roles[i]; !s.HasUnread(role.Name) {
			role.Cursor = at // nothing before the reset is new to it
		}
	}
	before.Before = newestOf(before.Before, maxResets-1)
	now := &Snapshot{Since: at, Before: before}
	for i := range s.Now.Roles {
		now.Roles = append(now.Roles, RoleState{Name: s.Now.Roles[i].Name, Cursor: at})
	}
	return s.event("", continuo.RunEvent{Kind: continuo.CrewReset, Crew: now.encode()}, fmt.Sprintf("The crew was reset. Entries up to %d are kept, and can be restored.", at))
}

// maxResets bounds how many resets can be taken back, one after another: each event of a crew stores the states of
// all of them.
const maxResets = 16

// newestOf copies the crew's states before the newest resets, at most so many.
func newestOf(before *Snapshot, limit int) *Snapshot {
	if before == nil || limit < 1 {
		return nil
	}
	newest := before.Clone()
	newest.Before = newestOf(before.Before, limit-1)
	return newest
}

// Restore makes the entry that takes the newest reset back; ok is false where there is none. The roles' answers since
// remain. A role that had not seen everything before the reset gets its earlier cursor back and sees the entries
// after that cursor.
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
		role.Session = "" // it has forgotten the entries before the reset
		if role.Cursor >= s.Now.Since {
			role.Cursor = max(role.Cursor, since.Cursor)
		}
	}
	for i := range s.Now.Roles {
		if came := &s.Now.Roles[i]; before.Role(came.Name) == nil {
			before.Roles = append(before.Roles, RoleState{Name: came.Name, Answers: came.Answers})
		}
	}
	before.Next = s.Now.Next
	return s.event("", continuo.RunEvent{Kind: continuo.CrewRestored, Crew: before.encode()}, "The reset was undone: the roles see the earlier entries again."), true
}

// Noted makes the event of a summary or of a role's notes from the entry that holds them.
func (s *State) Noted(entry continuo.Entry) continuo.Entry {
	entry.NodeID, entry.RunID, entry.WorkflowID, entry.Mode = entry.Summary.Role, s.RunID, continuo.CrewWorkflow(s.Crew.ID), continuo.ModeAgent
	entry.RunEvent = &continuo.RunEvent{Kind: continuo.CrewNoted}
	return entry
}

// event makes a hidden entry, for people and for the crew's own record.
func (s *State) event(node string, event continuo.RunEvent, text string) continuo.Entry {
	return continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: PartEvent, Content: continuo.Text(text), Mode: continuo.ModeAgent,
		RunID: s.RunID, WorkflowID: continuo.CrewWorkflow(s.Crew.ID), NodeID: node, RunEvent: &event,
	}
}
