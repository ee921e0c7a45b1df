package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/turn"
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
			e.options.Logger.InfoContext(ctx, "crew_rests", "conversation_id", run.ConversationID, "run_id", run.ID, "crew", t.state.Crew.ID, "state", t.state.Run, "reason", t.state.Reason)
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
		found, err = e.keeper.Settled(ctx, found)
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
	if now := t.state.Next(); now.Kind != crew.StepAttend || !now.Same(step) {
		return nil
	}
	answer := t.answers[step.Role.Name]
	switch {
	case found.State == continuo.TurnFinished && answer != nil && answer.TurnID == found.ID:
		return t.record(ctx, []continuo.Entry{t.state.Concluded(step, answer, crew.Memory{Cursor: cursorOf(answer)})}, continuo.AppendOptions{})
	case found.Reason == continuo.ReasonInterrupted || step.Retry:
		e.leaveRoom(ctx, t.state.Broken()+1)
		return e.roleTurn(ctx, t, step.After())
	case found.Reason == continuo.ReasonCancelled:
		return t.record(ctx, []continuo.Entry{t.state.Halt(step.Role.DisplayName + " was stopped")}, continuo.AppendOptions{})
	case t.failures[step.Role.Name] < maxRoleAttempts && found.Reason != continuo.ReasonTimeout && found.Reason != continuo.ReasonContentFilter:
		return e.roleTurn(ctx, t, step.After())
	}
	reason := string(found.Reason)
	if answer != nil && answer.TurnID == found.ID && answer.Error != nil {
		reason = answer.Error.Message
	}
	return t.record(ctx, []continuo.Entry{t.state.Fail(step, reason)}, continuo.AppendOptions{})
}

func cursorOf(answer *continuo.Entry) int64 {
	if answer.Round == nil {
		return 0
	}
	return answer.Round.Cursor
}

// errRoleDown says that a role's program cannot be asked now.
type errRoleDown struct{ error }

// errNoNews says that there is nothing to show to a role that it has not seen.
var errNoNews = errors.New("nothing is new to the role")

// roleTurn carries out a role's turn: from the cue to the answer.
func (e *Engine) roleTurn(ctx context.Context, t *crewTracker, step crew.Step) error {
	chosen, err := e.chooseRole(step.Role)
	if err != nil {
		return fmt.Errorf("%w: the role %s: %w", errNotHere, step.Role.Name, err)
	}
	if err := e.noteFor(ctx, t, step.Role); err != nil {
		return err
	}
	wanted := continuo.Turn{ID: roleTurnID(t.run, step), ConversationID: t.run.ConversationID}
	wanted.Mode, wanted.View, wanted.Model = chosen.mode, chosen.viewName, chosen.model
	wanted.RunID, wanted.WorkflowID, wanted.NodeID = t.run.ID, t.run.WorkflowID, step.Role.Name
	s := &speech{engine: e, t: t, step: step, chosen: chosen}
	defer s.end()
	chat, err := e.carryOut(ctx, t.run.ProjectID, wanted, Wait, false, s.begin)
	var down errRoleDown
	switch {
	case errors.Is(err, continuo.ErrExists): // another process carries it out
		return e.awaitTurn(ctx, wanted.ConversationID, wanted.ID)
	case errors.Is(err, errNoNews):
		return t.record(ctx, []continuo.Entry{t.state.Pass(step, s.through)}, continuo.AppendOptions{})
	case errors.As(err, &down) && ctx.Err() == nil:
		return e.roleIsDown(ctx, t, step, down.error)
	case err != nil:
		return err
	}
	var lost error
	for event, err := range chat.Events { // what comes of it stands in the log
		s.last, lost = event, err
	}
	if moved := new(continuo.ConflictError); errors.As(lost, &moved) { // the log has gone on before it began
		return nil
	}
	if errors.Is(lost, continuo.ErrLeaseLost) || errors.Is(lost, continuo.ErrNotRunning) || errors.Is(lost, continuo.ErrNotFound) {
		return nil // another process closes it, or it was stopped before it had begun: the log tells
	}
	return lost
}

// speech is one attempt of a role's turn.
type speech struct {
	engine  *Engine
	t       *crewTracker
	step    crew.Step
	chosen  chosen
	voice   *voice     // nil before it has begun
	through int64      // where the role's cursor moves if nothing is new to it
	last    turn.Event // the newest
}

// begin makes what the turn runs with, once the conversation is its own.
func (s *speech) begin(ctx context.Context) (*turn.Runner, turn.Input, error) {
	e, t, role := s.engine, s.t, s.step.Role
	if err := t.catchUp(ctx); err != nil {
		return nil, turn.Input{}, err
	}
	if !leadsToTurn(t.state.Next(), s.step) {
		return nil, turn.Input{}, errMoved
	}
	shown, err := e.newsFor(ctx, t, role, s.chosen)
	if err != nil {
		return nil, turn.Input{}, err
	}
	if s.through = shown.Through; shown.News == 0 {
		return nil, turn.Input{}, errNoNews
	}
	if s.voice, err = e.speakers.voice(ctx, t.seat(role), s.chosen.upstream.Model, *t.state.Now.Role(role.Name), e.roleTimeout(role)); err != nil {
		return nil, turn.Input{}, errRoleDown{err}
	}
	runner, err := e.roleRunner(t.state, role, s.chosen, s.voice)
	if err != nil {
		return nil, turn.Input{}, err
	}
	cue := t.state.Cue(s.step)
	return runner, turn.Input{
		Mode: s.chosen.mode, Cue: &cue, At: t.next, Author: role.Author(),
		Conclude: func(answer *continuo.Entry) ([]continuo.Entry, int64) {
			return nil, t.concludes(ctx, s.step, answer, s.voice)
		},
	}, nil
}

// end gives the voice back.
func (s *speech) end() {
	if s.voice != nil {
		s.engine.speakers.heard(s.voice, s.last)
	}
}

// newsFor says what a role's view would show it for the first time.
func (e *Engine) newsFor(ctx context.Context, t *crewTracker, role *crew.Role, chosen chosen) (*continuo.RolePlan, error) {
	conversation, err := e.Log.Conversation(ctx, t.run.ConversationID)
	if err != nil {
		return nil, err
	}
	view, err := e.roleView(t.state, role, false, false)
	if err != nil {
		return nil, err
	}
	plan, err := turn.Plan(ctx, e.Log, conversation, conversation.LastSeq, view, continuo.Envelope{}, chosen.upstream.Model.Info())
	if over := new(continuo.OverflowError); errors.As(err, &over) {
		return nil, errRoleDown{err}
	}
	if err != nil {
		return nil, err
	}
	return plan.Role, nil
}

// roleIsDown records that a role could not be asked, unless the cycle has gone on meanwhile.
func (e *Engine) roleIsDown(ctx context.Context, t *crewTracker, step crew.Step, reason error) error {
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	if !leadsToTurn(t.state.Next(), step) {
		return nil
	}
	said := "what its program said stands in the conversation"
	if e.options.LogText {
		said = reason.Error()
	}
	e.options.Logger.WarnContext(ctx, "role_down", "conversation_id", t.run.ConversationID, "run_id", t.run.ID, "role", step.Role.Name, "error", said)
	return t.record(ctx, []continuo.Entry{t.state.Fail(step, reason.Error())}, continuo.AppendOptions{})
}

// concludes puts the event of a turn's end on its answer, and returns the seq that it is right for. Where the log
// cannot be read the answer stands alone, and is concluded when the cycle is looked at again.
func (t *crewTracker) concludes(ctx context.Context, step crew.Step, answer *continuo.Entry, voice *voice) int64 {
	answer.RunEvent = nil
	if err := t.catchUp(context.WithoutCancel(ctx)); err != nil {
		return 0
	}
	if now := t.state.Next(); now.Kind != crew.StepAttend || !now.Same(step) {
		return 0
	}
	t.state.Conclude(step, answer, crew.Memory{Cursor: cursorOf(answer), Session: voice.sessionID()})
	return t.next
}

// leadsToTurn reports whether a step that is to be taken now is the one that was meant.
func leadsToTurn(now, step crew.Step) bool {
	if now.Kind == crew.StepAttend && step.Attempt > 1 {
		now = now.After()
	}
	return now.Kind == crew.StepBegin && now.Same(step)
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
func (e *Engine) canBeShown(ctx context.Context, c *crew.Crew, message continuo.Content) error {
	state := crew.NewState(c, "")
	for i := range c.Roles {
		chosen, err := e.chooseRole(&c.Roles[i])
		if err != nil {
			return err
		}
		runner, err := e.roleRunner(state, &c.Roles[i], chosen, &voice{Model: chosen.upstream.Model})
		if err != nil {
			return err
		}
		if err := runner.CheckFits(ctx, message); err != nil {
			return fmt.Errorf("the role %s: %w", c.Roles[i].Name, err)
		}
	}
	return nil
}
