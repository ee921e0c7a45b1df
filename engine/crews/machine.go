package crews

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/continuo-log/continuo/engine/internal/logtext"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/durable"
)

// maxRoleAttempts bounds the attempts at one answer of a role: one retry where its program ended or its upstream
// failed. Attempts that ended because this process ended do not count.
const maxRoleAttempts = 2

var _ durable.Machine[crew.Step] = (*crewCycle)(nil)

type crewDecision = durable.Decision[crew.Step]

// Execution makes the execution of a crew's cycle.
func (cs *Crews) Execution(run continuo.Run) durable.Execution {
	return durable.Execute(cs.driver, run, durable.Machine[crew.Step](newCycle(cs, run)))
}

// Steps returns the steps that are due: one at most, since the roles of a crew speak one after another.
func (c *crewCycle) Steps() []crew.Step {
	if step := c.State.Next(); step.Kind != crew.StepNone {
		return []crew.Step{step}
	}
	return nil
}

// Describe says which attempt a step is.
func (c *crewCycle) Describe(step crew.Step) durable.Step {
	described := durable.Step{
		Kind: durable.StepKind(step.Kind), Visit: step.Visit, Attempt: step.Attempt, ConversationID: c.Run.ConversationID,
	}
	if step.Role != nil {
		described.Name = step.Role.Name
	}
	return described
}

// Record makes the entries that follow without a turn.
func (c *crewCycle) Record() []continuo.Entry { return c.State.Record() }

// Lost decides on an attempt without a turn: the role is asked again.
func (c *crewCycle) Lost(step crew.Step) crewDecision {
	next := step.After()
	return crewDecision{Next: &next}
}

// Ended decides on an attempt whose turn has ended.
func (c *crewCycle) Ended(_ context.Context, step crew.Step, ended continuo.Turn) (decision crewDecision, _ error) {
	role := step.Role.Name
	answer := c.answers[role]
	answered := answer != nil && answer.TurnID == ended.ID
	switch next := step.After(); {
	case ended.State == continuo.TurnFinished && answered:
		decision.Entries = []continuo.Entry{c.State.Concluded(step, answer, crew.Memory{Cursor: cursorOf(answer)})}
	case ended.Reason == continuo.ReasonInterrupted || step.Retry:
		decision.Next, decision.Yield, decision.Attempts = &next, true, c.State.FailedAttempts()+1
	case ended.Reason == continuo.ReasonBudget: // the other roles have the same payer
		reason := string(ended.Reason)
		if answered && answer.Error != nil {
			reason = answer.Error.Message
		}
		decision.Entries = []continuo.Entry{c.State.BreakOff(reason)}
	case ended.Reason == continuo.ReasonCancelled:
		decision.Entries = []continuo.Entry{c.State.Halt(step.Role.DisplayName + " was stopped")}
	case c.failures[role] < maxRoleAttempts && mayRetry(ended.Reason):
		decision.Next = &next
	default:
		reason := string(ended.Reason)
		if answered && answer.Error != nil {
			reason = answer.Error.Message
		}
		if ended.Reason == continuo.ReasonContextOverflow { // the first attempt's answer is too long: the error says so
			reason = cmp.Or(c.causes[role], reason)
		}
		decision.Entries = []continuo.Entry{c.State.Fail(step, c.crews.options.Redact(reason))}
	}
	return decision, nil
}

// mayRetry reports whether a retry may succeed after a failure.
func mayRetry(reason continuo.FailureReason) bool {
	switch reason {
	case continuo.ReasonTimeout, continuo.ReasonContentFilter, continuo.ReasonContextOverflow, continuo.ReasonTurnLimit, continuo.ReasonBudget:
		return false
	}
	return true
}

func cursorOf(answer *continuo.Entry) int64 {
	if answer.Round == nil {
		return 0
	}
	return answer.Round.Cursor
}

// Idle counts and logs that no step is due.
func (c *crewCycle) Idle(ctx context.Context) {
	cs := c.crews
	cs.metrics.RunIdle(c.State.Run)
	cs.options.Logger.InfoContext(ctx, "crew_idle", "conversation_id", c.Run.ConversationID, "run_id", c.Run.ID,
		"crew", c.State.Crew.ID, "state", c.State.Run, "reason", logtext.Reason(cs.options.LogText, c.State.Reason))
}

// IsSupported reports whether this process has the models and connectors of the roles. The crew is known from the
// first entry.
func (c *crewCycle) IsSupported(ctx context.Context) bool {
	return c.Read(ctx, c.Run.FirstSeq, nil) != nil || c.crews.checkStaff(c.State.Crew) == nil
}

// roleTimeout bounds a role's turn.
func (cs *Crews) roleTimeout(role *crew.Role) time.Duration {
	if role.Timeout > 0 {
		return role.Timeout
	}
	return cs.options.Defaults.Timeout
}

// checkStaff looks up the models and connectors of a crew's roles; durable.ErrUnsupported.
func (cs *Crews) checkStaff(c *crew.Crew) error {
	for i := range c.Roles {
		if _, err := cs.chooseRole(&c.Roles[i]); err != nil {
			return fmt.Errorf("%w: crew %s: the role %s: %w", durable.ErrUnsupported, c.ID, c.Roles[i].Name, err)
		}
	}
	return nil
}

// checkShowable refuses a message that no request to a role could hold.
func (cs *Crews) checkShowable(ctx context.Context, c *crew.Crew, message Message) error {
	conversation := continuo.Conversation{ProjectID: message.Scope.ProjectID}
	state := crew.NewState(c, "")
	for i := range c.Roles {
		chosen, err := cs.chooseRole(&c.Roles[i])
		if err != nil {
			return err
		}
		runner, err := cs.roleRunner(state, &c.Roles[i], chosen, chosen.Upstream.Model, sessionMemory{})
		if err != nil {
			return err
		}
		if err := runner.CheckFits(ctx, conversation, message.Message); err != nil {
			return fmt.Errorf("the role %s: %w", c.Roles[i].Name, err)
		}
	}
	return nil
}
