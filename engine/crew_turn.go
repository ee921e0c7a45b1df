package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/turn"
)

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
	limit, began := e.roleTimeout(step.Role), time.Now()
	if err := e.summarizeFor(ctx, t, step.Role, chosen, limit/2); err != nil {
		return err
	}
	wanted := continuo.Turn{ID: roleTurnID(t.run, step), ConversationID: t.run.ConversationID}
	wanted.Mode, wanted.View, wanted.Model = chosen.mode, chosen.viewName, chosen.model
	wanted.RunID, wanted.WorkflowID, wanted.NodeID = t.run.ID, t.run.WorkflowID, step.Role.Name
	s := &speech{engine: e, t: t, step: step, chosen: chosen, left: limit - time.Since(began)}
	defer s.end()
	chat, err := e.carryOut(ctx, t.run.ProjectID, wanted, Wait, false, s.begin)
	var down errRoleDown
	switch {
	case errors.Is(err, continuo.ErrExists): // another process carries it out
		return e.awaitTurn(ctx, wanted.ConversationID, wanted.ID)
	case errors.Is(err, errNoNews):
		return e.passUnasked(ctx, t, step, s.through)
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
	if errors.Is(lost, continuo.ErrNotRunning) && !time.Now().Before(s.until) {
		return e.roleIsDown(ctx, t, step, errNoTime)
	}
	if errors.Is(lost, continuo.ErrLeaseLost) || errors.Is(lost, continuo.ErrNotRunning) || errors.Is(lost, continuo.ErrNotFound) {
		return nil // another process closes it, or it was stopped before it had begun: the log tells
	}
	return lost
}

// errNoTime says that what comes before a role's prompt took all the time that the role's turn has.
var errNoTime = errors.New("the time of its turn was up before it could be asked; raise the role's timeout, or crew.agent_timeout")

// passUnasked records that a role to which nothing is new up to a seq has nothing to add. A session that stood where the
// role did goes along.
func (e *Engine) passUnasked(ctx context.Context, t *crewTracker, step crew.Step, through int64) error {
	stood := t.state.Now.Role(step.Role.Name).Cursor
	if err := t.record(ctx, []continuo.Entry{t.state.Pass(step, through)}, continuo.AppendOptions{}); err != nil {
		return err
	}
	e.speakers.passed(t.seat(step.Role), stood, through)
	return nil
}

// speech is one attempt of a role's turn.
type speech struct {
	engine  *Engine
	t       *crewTracker
	step    crew.Step
	chosen  chosen
	left    time.Duration // of the role's time, once the conversation is the turn's own
	until   time.Time     // when that is up; zero before it has begun
	voice   *voice        // nil before it has begun
	through int64         // where the role's cursor moves if nothing is new to it
	last    turn.Event    // the newest
}

// begin makes what the turn runs with, once the conversation is its own.
func (s *speech) begin(ctx context.Context, _ continuo.Conversation) (*turn.Runner, turn.Input, error) {
	e, t, role := s.engine, s.t, s.step.Role
	s.until = time.Now().Add(s.left)
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
	if s.voice, err = e.speakers.voice(ctx, t.seat(role), s.chosen.upstream.Model, *t.state.Now.Role(role.Name), s.until); err != nil {
		return nil, turn.Input{}, errRoleDown{err}
	}
	runner, err := e.roleRunner(t.state, role, s.chosen, s.voice.Model, memory{s.voice.session != nil, s.voice.whole})
	if err != nil {
		return nil, turn.Input{}, err
	}
	if runner.Limits.Turn = time.Until(s.until); runner.Limits.Turn <= 0 {
		return nil, turn.Input{}, errRoleDown{errNoTime}
	}
	runner.Limits.OverTime = turn.OverTime("the turn", e.roleTimeout(role), "the role's timeout, or crew.agent_timeout")
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
	view, err := e.roleView(t.state, role, chosen, memory{})
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
	e.options.Logger.WarnContext(ctx, "role_down", "conversation_id", t.run.ConversationID, "run_id", t.run.ID, "role", step.Role.Name, "error", e.spoken(reason.Error()))
	return t.record(ctx, []continuo.Entry{t.state.Fail(step, e.options.Redact(reason.Error()))}, continuo.AppendOptions{})
}

// concludes puts the event of a turn's end on its answer, and returns the seq that it is right for. Where the log
// cannot be read the answer stands alone, and is concluded when the cycle is looked at again.
func (t *crewTracker) concludes(ctx context.Context, step crew.Step, answer *continuo.Entry, voice *voice) int64 {
	answer.RunEvent = nil
	step.Role.Tidy(answer) // before anything can fail: the log keeps the answer in any case
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
