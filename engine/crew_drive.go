package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
)

// maxRoleAttempts bounds how often a role is asked for one answer: once more where its program ended, or its upstream
// failed. Attempts that broke off because this program ended do not count.
const maxRoleAttempts = 2

// crewSteps takes a cycle's steps until nothing is left to do.
func (e *Engine) crewSteps(ctx context.Context, run continuo.Run) error {
	t := newCrewTracker(e, run)
	for ctx.Err() == nil {
		if err := t.catchUp(ctx); err != nil {
			return err
		}
		var err error
		switch step := t.state.Next(); step.Kind {
		case crew.StepRecord:
			err = t.record(ctx, t.state.Record(), continuo.AppendOptions{})
		case crew.StepBegin:
			err = e.roleTurn(ctx, t, step)
			e.leaveRoom(ctx, 0)
		case crew.StepAttend:
			err = e.attendRole(ctx, t, step)
		default:
			e.metrics.RunRests(t.state.Run)
			e.options.Logger.InfoContext(ctx, "crew_rests", "conversation_id", run.ConversationID, "run_id", run.ID, "crew", t.state.Crew.ID, "state", t.state.Run, "reason", e.spoken(t.state.Reason))
			return nil
		}
		if err != nil && !errors.Is(err, errMoved) {
			return err
		}
	}
	return nil
}

// attendRole waits for the turn of an attempt that has begun, and sees to what it left.
func (e *Engine) attendRole(ctx context.Context, t *crewTracker, step crew.Step) error {
	found, err := e.Log.Turns().Turn(ctx, t.run.ConversationID, roleTurnID(t.run, step))
	if err == nil && found.State == continuo.TurnRunning {
		found, err = e.keeper.RecoverIfAbandoned(ctx, found)
	}
	switch {
	case errors.Is(err, continuo.ErrNotFound), err == nil && found.State == continuo.TurnVoid:
		return e.roleTurn(ctx, t, step.After())
	case err != nil:
		return err
	case found.State == continuo.TurnRunning:
		return e.awaitTurn(ctx, found.ConversationID, found.ID)
	}
	// What the turn wrote stands in the log by now, but may be newer than what was read.
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	now := t.state.Next()
	if now.Kind != crew.StepAttend || !now.Same(step) {
		return nil
	}
	step = now // it may have been stopped and resumed meanwhile
	answer := t.answers[step.Role.Name]
	switch {
	case found.State == continuo.TurnFinished && answer != nil && answer.TurnID == found.ID:
		return t.record(ctx, []continuo.Entry{t.state.Concluded(step, answer, crew.Memory{Cursor: cursorOf(answer)})}, continuo.AppendOptions{})
	case found.Reason == continuo.ReasonInterrupted || step.Retry:
		e.leaveRoom(ctx, t.state.Broken()+1)
		return e.roleTurn(ctx, t, step.After())
	case found.Reason == continuo.ReasonCancelled:
		return t.record(ctx, []continuo.Entry{t.state.Halt(step.Role.DisplayName + " was stopped")}, continuo.AppendOptions{})
	case t.failures[step.Role.Name] < maxRoleAttempts && mayHelp(found.Reason):
		return e.roleTurn(ctx, t, step.After())
	}
	reason := string(found.Reason)
	if answer != nil && answer.TurnID == found.ID && answer.Error != nil {
		reason = answer.Error.Message
	}
	if found.Reason == continuo.ReasonContextOverflow { // of what the first attempt has said, which says why it failed
		reason = cmp.Or(t.causes[step.Role.Name], reason)
	}
	return t.record(ctx, []continuo.Entry{t.state.Fail(step, e.options.Redact(reason))}, continuo.AppendOptions{})
}

// mayHelp reports whether another attempt may succeed after one that failed.
func mayHelp(reason continuo.FailureReason) bool {
	switch reason {
	case continuo.ReasonTimeout, continuo.ReasonContentFilter, continuo.ReasonContextOverflow, continuo.ReasonTurnLimit:
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

// roleTurnID is the id of an attempt's turn: whoever goes on with the cycle can begin it once.
func roleTurnID(run continuo.Run, step crew.Step) string {
	return keyedTurnID(run, fmt.Sprintf("%s/%s/%d/%d", run.ID, step.Role.Name, step.Visit, step.Attempt))
}

// keyedTurnID is the id of the turn of a run that has a name within it.
func keyedTurnID(run continuo.Run, name string) string {
	return "turn_" + strings.TrimPrefix(run.ConversationID, "conv_") + "_" + hashOf(name)[:12]
}

// roleTimeout bounds a role's turn.
func (e *Engine) roleTimeout(role *crew.Role) time.Duration {
	if role.Timeout > 0 {
		return role.Timeout
	}
	return e.options.CrewDefaults.Timeout
}

// canStaff looks up who speaks for the roles of a crew.
func (e *Engine) canStaff(c *crew.Crew) error {
	for i := range c.Roles {
		if _, err := e.chooseRole(&c.Roles[i]); err != nil {
			return fmt.Errorf("%w: crew %s: the role %s: %w", errNotHere, c.ID, c.Roles[i].Name, err)
		}
	}
	return nil
}

// canBeShown refuses a message that no request to a role could hold.
func (e *Engine) canBeShown(ctx context.Context, c *crew.Crew, said CrewMessage) error {
	conversation := continuo.Conversation{ProjectID: said.Scope.ProjectID}
	state := crew.NewState(c, "")
	for i := range c.Roles {
		chosen, err := e.chooseRole(&c.Roles[i])
		if err != nil {
			return err
		}
		runner, err := e.roleRunner(state, &c.Roles[i], chosen, chosen.upstream.Model, memory{})
		if err != nil {
			return err
		}
		if err := runner.CheckFits(ctx, conversation, said.Message); err != nil {
			return fmt.Errorf("the role %s: %w", c.Roles[i].Name, err)
		}
	}
	return nil
}
