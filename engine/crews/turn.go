package crews

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/logtext"
	"github.com/continuo-log/continuo/engine/start"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// errRoleUnavailable says that a role's program cannot be asked now.
type errRoleUnavailable struct{ error }

// errNothingUnread says that a role has already seen every message.
var errNothingUnread = errors.New("nothing is new to the role")

// Begin runs a role's turn: from the cue to the answer.
func (c *crewCycle) Begin(ctx context.Context, step crew.Step) error {
	cs := c.crews
	chosen, err := cs.chooseRole(step.Role)
	if err != nil {
		return fmt.Errorf("%w: the role %s: %w", durable.ErrUnsupported, step.Role.Name, err)
	}
	limit, began := cs.roleTimeout(step.Role), time.Now()
	if current, err := cs.summarizeFor(ctx, c, step.Role, chosen, limit/2); err != nil || !current {
		return err
	}
	s := &roleTurn{crews: cs, cycle: c, step: step, chosen: chosen, left: limit - time.Since(began)}
	defer s.end()
	err = cs.turns.RunStep(ctx, cs.driver, c.Run, c.Describe(step), start.Step{Chosen: chosen, Prepare: s.begin, LeaseFirst: true, Observe: s.observe})
	var down errRoleUnavailable
	switch {
	case errors.Is(err, errNothingUnread):
		return c.recordPass(ctx, step, s.through)
	case errors.As(err, &down) && ctx.Err() == nil:
		return c.recordRoleFailure(ctx, step, down.error)
	}
	return err
}

// errNoTime says that the steps before a role's request took all the time of the role's turn.
var errNoTime = errors.New("its turn timed out before the request was sent; raise the role's timeout, or crew.agent_timeout")

// recordPass records a pass of a role to which nothing is new up to a seq. A session that was at the role's cursor
// advances with it.
func (c *crewCycle) recordPass(ctx context.Context, step crew.Step, through int64) error {
	cursor := c.State.Now.Role(step.Role.Name).Cursor
	appended, err := c.Append(ctx, c.State.Pass(step, through))
	if appended {
		c.crews.sessions.recordPass(c.speaker(step.Role), cursor, through)
	}
	return err
}

// roleTurn is one attempt of a role's turn.
type roleTurn struct {
	crews     *Crews
	cycle     *crewCycle
	step      crew.Step
	chosen    catalog.ResolvedTurn
	left      time.Duration // of the role's time, counted from when the turn has the conversation's lease
	until     time.Time     // the deadline; zero before the turn has begun
	roleModel *roleModel    // nil before it has begun
	through   int64         // the role's new cursor if nothing is new to it
	last      turn.Event    // the newest
}

// begin prepares the runner and the input of the turn, once the turn has the conversation's lease.
func (s *roleTurn) begin(ctx context.Context, _ continuo.Conversation) (*turn.Runner, turn.Input, error) {
	cs, c, role := s.crews, s.cycle, s.step.Role
	s.until = time.Now().Add(s.left)
	if err := c.CatchUp(ctx); err != nil {
		return nil, turn.Input{}, err
	}
	if !c.isDue(s.step) {
		return nil, turn.Input{}, durable.ErrStale
	}
	shown, err := cs.planUnread(ctx, c, role, s.chosen)
	if err != nil {
		return nil, turn.Input{}, err
	}
	if s.through = shown.Through; shown.News == 0 {
		return nil, turn.Input{}, errNothingUnread
	}
	if s.roleModel, err = cs.sessions.acquire(ctx, c.speaker(role), s.chosen.Upstream.Model, *c.State.Now.Role(role.Name), s.until); err != nil {
		return nil, turn.Input{}, errRoleUnavailable{err}
	}
	runner, err := cs.roleRunner(c.State, role, s.chosen, s.roleModel.Model, sessionMemory{s.roleModel.session != nil, s.roleModel.whole})
	if err != nil {
		return nil, turn.Input{}, err
	}
	if runner.Limits.Turn = time.Until(s.until); runner.Limits.Turn <= 0 {
		return nil, turn.Input{}, errRoleUnavailable{errNoTime}
	}
	runner.Limits.OverTime = turn.OverTime("the turn", cs.roleTimeout(role), "the role's timeout, or crew.agent_timeout")
	cue := c.State.Cue(s.step)
	return runner, turn.Input{
		Mode: s.chosen.Mode, Cue: &cue, At: c.Next(), Author: role.Author(),
		Conclude: func(answer *continuo.Entry) ([]continuo.Entry, int64) {
			return nil, c.concludeTurn(ctx, s.step, answer, s.roleModel)
		},
	}, nil
}

// observe keeps the newest event of the turn. Where the turn did not begin because the log had grown, it returns
// durable.ErrStale.
func (s *roleTurn) observe(event turn.Event, err error) error {
	s.last = event
	conflict := new(continuo.ConflictError)
	switch {
	case errors.As(err, &conflict):
		return durable.ErrStale
	case errors.Is(err, continuo.ErrNotRunning) && !time.Now().Before(s.until):
		return errRoleUnavailable{errNoTime}
	}
	return err
}

// end releases the role's model.
func (s *roleTurn) end() {
	if s.roleModel != nil {
		s.crews.sessions.release(s.roleModel, s.last)
	}
}

// planUnread plans a role's request to find what is new to the role.
func (cs *Crews) planUnread(ctx context.Context, c *crewCycle, role *crew.Role, chosen catalog.ResolvedTurn) (*window.RolePlan, error) {
	conversation, err := cs.log.Conversation(ctx, c.Run.ConversationID)
	if err != nil {
		return nil, err
	}
	view, err := cs.roleView(c.State, role, chosen, sessionMemory{})
	if err != nil {
		return nil, err
	}
	plan, err := turn.Plan(ctx, cs.log, conversation, conversation.LastSeq, view, continuo.Envelope{}, chosen.Upstream.Model.Info())
	if over := new(continuo.OverflowError); errors.As(err, &over) {
		return nil, errRoleUnavailable{err}
	}
	if err != nil {
		return nil, err
	}
	return plan.Role, nil
}

// recordRoleFailure records that a role could not be asked, unless the cycle has changed meanwhile.
func (c *crewCycle) recordRoleFailure(ctx context.Context, step crew.Step, reason error) error {
	cs := c.crews
	if err := c.CatchUp(ctx); err != nil || !c.isDue(step) {
		return err
	}
	cs.options.Logger.WarnContext(ctx, "role_failed", "conversation_id", c.Run.ConversationID, "run_id", c.Run.ID, "role", step.Role.Name, "error", logtext.Reason(cs.options.LogText, reason.Error()))
	_, err := c.Append(ctx, c.State.Fail(step, cs.options.Redact(reason.Error())))
	return err
}

// concludeTurn adds the event of a turn's end to its answer, and returns the seq at which the answer must be
// appended. Where the log cannot be read the answer has no event, and is concluded when the cycle is read again.
func (c *crewCycle) concludeTurn(ctx context.Context, step crew.Step, answer *continuo.Entry, roleModel *roleModel) int64 {
	answer.RunEvent = nil
	step.Role.Tidy(answer) // first, because the answer is appended even if the rest fails
	if err := c.CatchUp(context.WithoutCancel(ctx)); err != nil {
		return 0
	}
	if now := c.State.Next(); now.Kind != crew.StepAttend || !now.Same(step) {
		return 0
	}
	c.State.Conclude(step, answer, crew.Memory{Cursor: cursorOf(answer), Session: roleModel.sessionID()})
	return c.Next()
}

// isDue reports whether the turn of an attempt is still to begin, by the entries that were read.
func (c *crewCycle) isDue(step crew.Step) bool {
	return c.Describe(c.State.Next()).LeadsTo(c.Describe(step))
}
