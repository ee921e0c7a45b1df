package crew

import (
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// Step is the step of a cycle that is due.
type Step struct {
	Kind StepKind
	// Role, Visit and Attempt identify the turn that is to begin, or that has begun. Visit counts the turns of the cycle
	// from 1, Attempt the attempts at one answer.
	Role           *Role
	Visit, Attempt int
	// Retry says that the cycle was resumed after the attempt had begun: if the attempt failed it is tried again.
	Retry bool
}

// StepKind is the kind of a Step.
type StepKind string

// The kinds of steps; see those of workflows.
const (
	StepNone   StepKind = ""
	StepBegin  StepKind = "begin"
	StepAttend StepKind = "attend"
	StepRecord StepKind = "record"
)

// After is the attempt after one without an answer.
func (step Step) After() Step {
	return Step{Kind: StepBegin, Role: step.Role, Visit: step.Visit, Attempt: step.Attempt + 1}
}

// Same reports whether two steps are of the same attempt.
func (step Step) Same(other Step) bool {
	return step.Role != nil && other.Role != nil && step.Role.Name == other.Role.Name && step.Visit == other.Visit && step.Attempt == other.Attempt
}

// maxFailedAttempts bounds how many attempts of a turn may break off in a row and be followed by an automatic retry.
const maxFailedAttempts = 50

// Next returns the step that is due.
func (s *State) Next() Step {
	role := s.Crew.Role(s.Now.Next)
	switch {
	case s.Run != continuo.RunRunning:
		return Step{}
	case s.current != nil && s.failedAttempts >= maxFailedAttempts:
		return Step{Kind: StepRecord}
	case s.current != nil:
		return *s.current
	case s.isOver(), !s.HasUnread(role.Name):
		return Step{Kind: StepRecord}
	}
	return Step{Kind: StepBegin, Role: role, Visit: s.turns + 1, Attempt: 1}
}

// isOver reports whether one of the conditions for the cycle's end is met.
func (s *State) isOver() bool {
	return s.ended != "" || s.silent >= len(s.Crew.Roles) || s.turns-s.before >= s.limit()
}

// limit is how many turns a cycle may have.
func (s *State) limit() int { return s.Crew.MaxRounds * len(s.Crew.Roles) }

// Record makes the entries that follow without a turn: the pass of a role to which nothing is new, the failure of a
// turn that broke off too often, or the end of the cycle. They must be appended together; there are none unless Next
// is a StepRecord.
func (s *State) Record() []continuo.Entry {
	if s.Next().Kind != StepRecord {
		return nil
	}
	switch {
	case s.current != nil:
		return []continuo.Entry{s.Fail(*s.current, fmt.Sprintf("its turn failed %d times in a row", s.failedAttempts))}
	case s.isOver():
		return []continuo.Entry{s.end()}
	}
	return []continuo.Entry{s.Pass(Step{Role: s.Crew.Role(s.Now.Next), Visit: s.turns + 1, Attempt: 1}, 0)}
}

// Pass makes the answer of a role that is not asked because nothing up to a seq is new to it.
func (s *State) Pass(step Step, through int64) continuo.Entry {
	pass := continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(continuo.Placeholder)}
	s.Conclude(step, &pass, Memory{Cursor: through})
	return pass
}

// end makes the entry that ends the cycle.
func (s *State) end() continuo.Entry {
	kind, reason := continuo.RunEventFinished, s.ended
	switch {
	case reason != "":
	case s.silent >= len(s.Crew.Roles) && s.failed >= len(s.Crew.Roles):
		kind, reason = continuo.RunEventFailed, "every role failed in a row: "+s.failures()
	case s.silent >= len(s.Crew.Roles) && s.failed > 0:
		reason = "no role has anything to add; failed: " + s.failures()
	case s.silent >= len(s.Crew.Roles):
		reason = "no role has anything to add"
	default:
		reason = fmt.Sprintf("the limit of %d turns in a cycle was reached (max_rounds %d)", s.limit(), s.Crew.MaxRounds)
	}
	return s.event("", continuo.RunEvent{Kind: kind, Reason: reason}, "The crew's cycle ended: "+reason)
}

// failures lists the roles that failed in their last turn.
func (s *State) failures() string {
	var failed []string
	for i := range s.Crew.Roles {
		if reason := s.errors[s.Crew.Roles[i].Name]; reason != "" {
			failed = append(failed, s.Crew.Roles[i].DisplayName+" ("+reason+")")
		}
	}
	return strings.Join(failed, "; ")
}

// Author is the role as the author of an entry.
func (r *Role) Author() *continuo.Author {
	return &continuo.Author{RoleName: r.Name, DisplayName: r.DisplayName, AgentName: r.AgentType}
}
