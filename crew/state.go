package crew

import (
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// State is computed from the entries since a cycle began. It is not safe for concurrent use.
type State struct {
	Crew  *Crew
	RunID string
	// Run is the state of the cycle, Reason why it ended, failed or was stopped.
	Run    continuo.RunState
	Reason string
	// Now is the crew's state, with the roles of its file.
	Now Snapshot
	// Seq is the seq of the newest event.
	Seq int64

	turns          int              // concluded turns of the cycle
	before         int              // of these, those that began before a person's newest message
	silent         int              // turns in a row without a message: passes and failures
	failed         int              // of these, failures
	current        *Step            // the turn that has begun and is not concluded
	failedAttempts int              // attempts of that turn that broke off in a row
	ended          string           // why the cycle must end; "" while it continues
	newest         map[string]int64 // each speaker's newest seq, people's under ""
	passed         map[string]bool  // roles that had nothing to add in their last turn
	errors         map[string]string
}

// NewState makes the initial state of a cycle.
func NewState(c *Crew, runID string) *State {
	s := &State{Crew: c, RunID: runID, Run: continuo.RunRunning, newest: map[string]int64{}, passed: map[string]bool{}, errors: map[string]string{}}
	s.applyState(nil)
	return s
}

// RunState is the state of the cycle.
func (s *State) RunState() continuo.RunState { return s.Run }

// applyState sets the crew's state: roles that are not in the file are dropped, new ones have seen nothing.
func (s *State) applyState(recorded *Snapshot) {
	var now Snapshot
	if recorded != nil {
		now = *recorded
	}
	now.Roles = make([]RoleState, len(s.Crew.Roles))
	for i := range s.Crew.Roles {
		now.Roles[i].Name = s.Crew.Roles[i].Name
		if recorded == nil {
			continue
		}
		if known := recorded.Role(now.Roles[i].Name); known != nil {
			now.Roles[i] = *known
		}
	}
	if s.Crew.Role(now.Next) == nil {
		now.Next = s.Crew.Roles[0].Name
	}
	s.Now = now
}

// Apply applies an entry of the log; it must be given all entries from the cycle's first on. An invalid event of the
// cycle is an error: the cycle cannot continue.
func (s *State) Apply(entry *continuo.Entry) error {
	s.takeMessage(entry)
	event := entry.RunEvent
	if event == nil || entry.RunID != s.RunID {
		return nil
	}
	if err := s.follow(entry, event); err != nil {
		return fmt.Errorf("cycle %s: entry %d: %w: %w", s.RunID, entry.Seq, continuo.ErrInvalid, err)
	}
	s.Seq = entry.Seq
	return nil
}

// takeMessage records the seq of a message by its speaker. After a person's message all roles may speak again.
func (s *State) takeMessage(entry *continuo.Entry) {
	switch {
	case entry.Hidden || entry.IsPlaceholder() || entry.IsBlank():
	case entry.Role == continuo.User:
		s.newest[""] = entry.Seq
		s.silent, s.failed, s.ended, s.before = 0, 0, "", s.turns
		if s.current != nil {
			s.before++ // the turn in progress does not answer the message
		}
	case entry.Role == continuo.Assistant && (entry.HasCalls() || !entry.Content.IsEmpty()):
		s.newest[s.speaker(entry)] = entry.Seq
	}
}

// speaker is the role_name of a message's author; "" where the author is unknown or a role of another crew.
func (s *State) speaker(entry *continuo.Entry) string {
	if id, ok := continuo.CrewOf(entry.WorkflowID); entry.Author == nil || ok && id != s.Crew.ID {
		return ""
	}
	return entry.Author.RoleName
}

// follow applies an event.
func (s *State) follow(entry *continuo.Entry, event *continuo.RunEvent) error {
	switch recorded, err := ReadSnapshot(event); {
	case err != nil:
		return err
	case recorded != nil:
		s.applyState(recorded)
	}
	switch event.Kind {
	case continuo.RunBegan:
	case continuo.RunNodeBegan, continuo.RunNodeFinished, continuo.CrewRoleFailed:
		role := s.Crew.Role(entry.NodeID)
		if role == nil {
			return fmt.Errorf("%s is of the role %q, which the crew does not have", event.Kind, entry.NodeID)
		}
		s.take(role, entry, event)
	case continuo.CrewNoted:
		if noted := s.Now.Role(entry.NodeID); noted != nil && entry.PartType == continuo.PartNotes && entry.Summary != nil && entry.Redacted == nil {
			noted.Notes = entry.Seq
		}
	case continuo.CrewReset, continuo.CrewRestored:
		s.current, s.failedAttempts = nil, 0
	case continuo.RunEventFinished:
		s.Run, s.Reason = continuo.RunFinished, event.Reason
	case continuo.RunEventFailed:
		s.Run, s.Reason = continuo.RunFailed, event.Reason
	case continuo.RunEventStopped:
		s.Run, s.Reason = continuo.RunStopped, event.Reason
	case continuo.RunEventCancelled:
		s.Run, s.Reason = continuo.RunCancelled, event.Reason
	case continuo.RunResumed:
		s.Run, s.Reason = continuo.RunRunning, ""
		s.silent, s.failed, s.failedAttempts, s.ended = 0, 0, 0, ""
		if s.current != nil {
			s.current.Retry = true
		}
	default:
		return fmt.Errorf("there is no event %q", event.Kind)
	}
	return nil
}

// take applies an event of a role's turn.
func (s *State) take(role *Role, entry *continuo.Entry, event *continuo.RunEvent) {
	if event.Kind == continuo.RunNodeBegan {
		if s.current != nil && s.current.Visit == event.Visit {
			s.failedAttempts++
		} else {
			s.failedAttempts = 0
		}
		s.current = &Step{Kind: StepAttend, Role: role, Visit: event.Visit, Attempt: event.Attempt}
		return
	}
	s.current, s.failedAttempts = nil, 0
	s.turns++
	answered := event.Kind == continuo.RunNodeFinished && !passes(event)
	s.passed[role.Name] = event.Kind == continuo.RunNodeFinished && !answered
	delete(s.errors, role.Name)
	switch {
	case answered:
		s.silent, s.failed = 0, 0
	case event.Kind == continuo.CrewRoleFailed:
		s.errors[role.Name] = event.Reason
		s.silent++
		s.failed++
	case s.HasUnread(role.Name): // the role has not seen all messages, so that its pass is not final
		s.silent, s.failed = 0, 0
	default:
		s.silent++
		if role.IsModerator {
			s.ended = fmt.Sprintf("%s, who moderates, has nothing to add", role.DisplayName)
		}
	}
}

// passReason marks a role's event where it had nothing to add.
const passReason = "nothing to add"

func passes(event *continuo.RunEvent) bool { return event.Reason == passReason }

// HasUnread reports whether there is a message of another speaker after a role's cursor. Messages before the cycle need
// no record: the message that began the cycle is newer.
func (s *State) HasUnread(role string) bool {
	cursor := s.Now.Role(role).Cursor
	for speaker, seq := range s.newest {
		if (speaker != role || speaker == "") && seq > cursor {
			return true
		}
	}
	return false
}

// IsIdle reports whether no role has unread messages, so that no role is due.
func (s *State) IsIdle() bool {
	for i := range s.Crew.Roles {
		if s.HasUnread(s.Crew.Roles[i].Name) {
			return false
		}
	}
	return true
}

// Failed says why a role did not answer in its last turn of the cycle; "" where it did.
func (s *State) Failed(role string) string { return s.errors[role] }

// FailedAttempts is how many attempts of the current turn broke off in a row.
func (s *State) FailedAttempts() int { return s.failedAttempts }
