package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/internal/backoff"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// driving is a run that this process goes on with.
type driving struct {
	again bool            // somebody asked for it since it was last looked at
	ctx   context.Context // of the driving; one that has ended does nothing more
}

// goOn goes on with a run in a goroutine of its own, unless this process does so already, and returns how the run
// stands. Any number of processes may go on with one run: what each does follows of the log, and is done once.
func (e *Engine) goOn(ctx context.Context, run continuo.Run, detached bool) (*RunStatus, error) {
	if err := e.drive(ctx, run, detached); err != nil {
		return nil, err
	}
	return e.runStatus(ctx, run)
}

// goneOn is goOn after something was recorded: that the program ends is no failure, others take the run up.
func (e *Engine) goneOn(ctx context.Context, run continuo.Run, detached bool) (*RunStatus, error) {
	if err := e.drive(ctx, run, detached); err != nil && !errors.Is(err, ErrClosing) {
		return nil, err
	}
	return e.runStatus(ctx, run)
}

// drive begins to go on with a run. One that is not detached stops, for others to take up, when ctx ends.
func (e *Engine) drive(ctx context.Context, run continuo.Run, detached bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosing
	}
	if busy := e.runs[run.ID]; busy != nil && busy.ctx.Err() == nil {
		busy.again = true
		return nil
	}
	driveCtx, cancel := context.WithCancelCause(continuo.WithMemory(context.WithoutCancel(ctx), nil))
	mine := &driving{again: true, ctx: driveCtx}
	e.runs[run.ID] = mine
	e.turns.Add(1)
	interrupt := func() { cancel(turn.ErrInterrupted) }
	stops := []func() bool{context.AfterFunc(e.closing, interrupt)}
	if !detached {
		stops = append(stops, context.AfterFunc(ctx, interrupt))
	}
	driven := e.metrics.RunDriven()
	go func() {
		defer e.turns.Done()
		defer driven()
		for e.isAsked(run.ID, mine) {
			e.driveOn(driveCtx, run)
		}
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}()
	return nil
}

// isAsked reports whether somebody asked for a run since it was last looked at; otherwise its driving is over.
func (e *Engine) isAsked(runID string, mine *driving) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if mine.again {
		mine.again = false
		return true
	}
	if e.runs[runID] == mine {
		delete(e.runs, runID)
	}
	return false
}

// drivePatience is how long is waited where a run cannot go on for a reason that passes.
const drivePatience = time.Second

// driveOn takes steps until nothing is left to do, and tries again what fails for a reason that passes. What
// stays breaks the run off: somebody may mend it and resume the run.
func (e *Engine) driveOn(ctx context.Context, run continuo.Run) {
	logger := e.options.Logger.With("conversation_id", run.ConversationID, "run_id", run.ID)
	for {
		err := e.stepsOf(ctx, run)
		switch {
		case errors.Is(err, errNotHere):
			logger.WarnContext(ctx, "run_left", "error", err.Error())
			return
		case errors.Is(err, errUnread):
			logger.ErrorContext(ctx, "run_unread", "error", err.Error())
			if err := e.endUnread(ctx, run, continuo.RunBrokeOff, err.Error()); err != nil {
				logger.ErrorContext(ctx, "run_left", "error", err.Error())
			}
			return
		case err == nil || ctx.Err() != nil || errors.Is(err, ErrClosing) || errors.Is(err, continuo.ErrArchived) || errors.Is(err, continuo.ErrNotFound):
			return
		case !passes(err):
			logger.ErrorContext(ctx, "run_broke_off", "error", err.Error())
			if err := e.breakOff(ctx, run, err); err != nil {
				logger.ErrorContext(ctx, "run_left", "error", err.Error())
			}
			return
		}
		logger.WarnContext(ctx, "run_waits", "error", err.Error())
		e.pause(ctx, drivePatience)
	}
}

// stepsOf takes the steps of a run or of a crew's cycle.
func (e *Engine) stepsOf(ctx context.Context, run continuo.Run) error {
	if _, ok := continuo.CrewOf(run.WorkflowID); ok {
		return e.crewSteps(ctx, run)
	}
	return e.steps(ctx, run)
}

// breakOff records that a run that is under way cannot go on.
func (e *Engine) breakOff(ctx context.Context, run continuo.Run, reason error) error {
	if _, ok := continuo.CrewOf(run.WorkflowID); ok {
		return e.changeCrew(ctx, newCrewTracker(e, run), func(s *crew.State) ([]continuo.Entry, error) {
			if s.Run != continuo.RunRunning {
				return nil, nil
			}
			return []continuo.Entry{s.BreakOff(e.options.Redact(reason.Error()))}, nil
		})
	}
	return e.change(ctx, run, func(s *workflow.State) ([]continuo.Entry, error) {
		if s.Run != continuo.RunRunning {
			return nil, nil
		}
		return []continuo.Entry{s.BreakOff(e.options.Redact(reason.Error()))}, nil
	})
}

// pause waits, unless the program is ending.
func (e *Engine) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-e.draining.Done():
	}
}

// maxPause bounds how long is waited before a role of a crew that broke off again and again is asked again.
const maxPause = 30 * time.Second

// leaveRoom waits between two turns of a run: those of other processes who wait for the conversation look at it
// now and then. Broke counts attempts of a crew's role that broke off one after another.
func (e *Engine) leaveRoom(ctx context.Context, broke int) {
	e.pause(ctx, max(e.options.StepPause, backoff.Doubled(e.options.StepPause, maxPause, broke)))
}

// errNotHere says that a run or a crew needs an agent, a model or a view that the settings of this program do not have.
// Perhaps those of another one do: the run is left as it is.
var errNotHere = errors.New("it cannot be carried on with these settings")

// canCarry looks up what all steps of a workflow need; errNotHere.
func (e *Engine) canCarry(w *workflow.Workflow) error {
	for i := range w.Nodes {
		node := &w.Nodes[i]
		if _, err := e.choose(choice{mode: continuo.ModeRun, agent: node.Agent, model: node.Model, viewName: node.View}); err != nil {
			return fmt.Errorf("the step %s: %w; go on with it where they are, or add it here", node.ID, orNotHere(err))
		}
	}
	return nil
}

// orNotHere makes an unknown name of an agent, a model or a view an errNotHere. Other errors stay what they are.
func orNotHere(err error) error {
	if errors.Is(err, continuo.ErrInvalid) || errors.Is(err, continuo.ErrNotFound) {
		return fmt.Errorf("%w: %w", errNotHere, err)
	}
	return err
}

// spoken is a reason as log events may tell it: it repeats what agents print and what people say.
func (e *Engine) spoken(reason string) string {
	if reason == "" || e.options.LogText {
		return reason
	}
	return "it stands in the conversation"
}

// attend waits for the turn of an attempt that has begun, and sees to what it left.
func (e *Engine) attend(ctx context.Context, t *tracker, step workflow.Step) error {
	found, err := e.Log.Turns().Turn(ctx, t.run.ConversationID, stepTurnID(t.run, step))
	if err == nil && found.State == continuo.TurnRunning {
		found, err = e.keeper.RecoverIfAbandoned(ctx, found)
	}
	switch {
	case errors.Is(err, continuo.ErrNotFound), err == nil && found.State == continuo.TurnVoid:
		return e.goOnAfter(ctx, t, step, t.failureOf(step, continuo.ReasonInterrupted))
	case err != nil:
		return err
	case found.State == continuo.TurnRunning:
		return e.awaitTurn(ctx, found.ConversationID, found.ID)
	}
	// What the turn wrote stands in the log by now, but may be newer than what was read.
	if err := t.catchUp(ctx); err != nil {
		return err
	}
	now := t.state.Of(step.Node.ID)
	if !sameAttempt(now, step) {
		return nil
	}
	step = now // it may have been stopped and resumed meanwhile
	switch {
	case found.State == continuo.TurnFinished:
		return e.recordRun(ctx, t, t.conclude(step, t.answers[step.Node.ID], t.cuts[step.Node.ID]))
	case step.Retry:
		e.leaveRoom(ctx, 0)
		return e.step(ctx, t, step.After())
	case found.Reason == continuo.ReasonCancelled:
		return e.recordRun(ctx, t, []continuo.Entry{t.state.Halt(fmt.Sprintf("the step %s was stopped", step.Node.ID))})
	}
	return e.goOnAfter(ctx, t, step, t.failureOf(step, found.Reason))
}

// goOnAfter records what follows of an attempt that broke off, or goes on with it at once.
func (e *Engine) goOnAfter(ctx context.Context, t *tracker, step workflow.Step, failure continuo.TurnError) error {
	if entries := t.state.BrokeOff(step, failure, e.Log.Now()); len(entries) > 0 {
		return e.recordRun(ctx, t, entries)
	}
	e.leaveRoom(ctx, 0)
	if step.Branch != "" {
		return e.stepBeside(ctx, t, step.After())
	}
	return e.step(ctx, t, step.After())
}

// awaitRetry waits until the next attempt of a step may begin, or until the run goes on in another way, and begins it.
func (e *Engine) awaitRetry(ctx context.Context, t *tracker, step workflow.Step) error {
	wait := step.Until.Sub(e.Log.Now())
	if wait <= 0 && step.Branch != "" {
		return e.stepBeside(ctx, t, step.After())
	}
	if wait <= 0 {
		return e.step(ctx, t, step.After())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.draining, func() { cancel(ErrClosing) })()
	listener := e.Log.Listen(t.run.ConversationID)
	defer listener.Close()
	changed := listener.Changed()
	if err := t.catchUp(ctx); err != nil || t.state.Of(step.Node.ID).Kind != workflow.StepWait {
		return err
	}
	listener.Wait(ctx, changed, min(wait, retryPoll))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// retryPoll is how often a run that waits to retry a step is looked at, where nothing tells of a change.
const retryPoll = 5 * time.Second

// awaitTurn waits for the end of a turn, wherever it runs.
func (e *Engine) awaitTurn(ctx context.Context, conversationID, turnID string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.draining, func() { cancel(ErrClosing) })() // it may be another process's
	listener := e.Log.Listen(conversationID)
	defer listener.Close()
	changed := listener.Changed()
	for _, err := range e.keeper.Follow(ctx, conversationID, turnID, 0) {
		if err != nil && !errors.Is(err, continuo.ErrNotFound) { // it may have been void
			return err
		}
	}
	listener.Wait(ctx, changed, otherPoll) // where it ended before it had begun, nobody must ask at once
	return nil
}

// step carries out an attempt: its turn, from the cue to the answer.
func (e *Engine) step(ctx context.Context, t *tracker, step workflow.Step) error {
	chosen, err := e.chooseFor(step.Node)
	if err != nil {
		return err
	}
	wanted := stepTurn(t.run, step, chosen)
	begin := func(ctx context.Context, _ continuo.Conversation) (*turn.Runner, turn.Input, error) {
		if err := t.catchUp(ctx); err != nil {
			return nil, turn.Input{}, err
		}
		if !leadsTo(t.state.Of(step.Node.ID), step) {
			return nil, turn.Input{}, errMoved
		}
		texts, err := t.state.Texts(step)
		if err != nil {
			return nil, turn.Input{}, err
		}
		chosen.system = append(chosen.system, texts...)
		chosen.policy = chosen.policy.Merge(step.Node.Tools)
		cue := t.state.Cue(step)
		runner := e.stepRunner(chosen)
		if schema := step.AnswerSchema(); schema != nil {
			runner.Answer = &turn.AnswerSchema{Name: step.Node.ID, Schema: schema}
		}
		return runner, turn.Input{
			Mode: chosen.mode, AgentID: chosen.agent, Cue: &cue, AskAgain: step.Resumes,
			Conclude: func(answer *continuo.Entry) ([]continuo.Entry, int64) { return t.concludes(ctx, step, answer) },
		}, nil
	}
	return e.carryOutTurn(ctx, t.run, wanted, begin)
}

// stepRunner makes the runner of a step. A run goes on waiting where nobody decides on a call.
func (e *Engine) stepRunner(chosen chosen) *turn.Runner {
	runner := e.runner(chosen)
	runner.Limits.Ask = turn.AskWithoutLimit
	return runner
}

// chooseFor looks up what a node runs with.
func (e *Engine) chooseFor(node *workflow.Node) (chosen, error) {
	c := choice{mode: continuo.ModeRun, agent: node.Agent, model: node.Model, viewName: node.View, usualView: string(continuo.ModeRun), step: true}
	found, err := e.choose(c)
	if err != nil {
		return chosen{}, fmt.Errorf("the step %s: %w", node.ID, orNotHere(err))
	}
	return found, nil
}

// stepTurn is the turn of an attempt in the run's conversation.
func stepTurn(run continuo.Run, step workflow.Step, chosen chosen) continuo.Turn {
	wanted := continuo.Turn{ID: stepTurnID(run, step), ConversationID: run.ConversationID}
	wanted.Mode, wanted.AgentID, wanted.View, wanted.Model = chosen.mode, chosen.agent, chosen.viewName, chosen.model
	wanted.RunID, wanted.WorkflowID, wanted.NodeID = run.ID, run.WorkflowID, step.Node.ID
	return wanted
}

// carryOutTurn carries out the turn of an attempt to its end, or waits for it where another process carries it out.
func (e *Engine) carryOutTurn(ctx context.Context, run continuo.Run, wanted continuo.Turn, begin beginning) error {
	chat, err := e.carryOut(ctx, run.ProjectID, wanted, Wait, false, begin)
	if errors.Is(err, continuo.ErrExists) { // another process carries it out
		return e.awaitTurn(ctx, wanted.ConversationID, wanted.ID)
	}
	if err != nil {
		return err
	}
	var lost error
	for _, err := range chat.Events { // what comes of it stands in the log
		lost = err
	}
	if errors.Is(lost, continuo.ErrLeaseLost) || errors.Is(lost, continuo.ErrNotRunning) || errors.Is(lost, continuo.ErrNotFound) {
		return nil // another process closes it, or it was stopped before it had begun: the log tells
	}
	return lost
}

// concludes makes what stands behind a step's answer in the log, and the seq that it is right for. The turn asks for
// it, while whoever goes on with the run waits for the turn. Where the log cannot be read the answer stands alone,
// and is concluded when the run is looked at again.
func (t *tracker) concludes(ctx context.Context, step workflow.Step, answer *continuo.Entry) ([]continuo.Entry, int64) {
	if err := t.catchUp(context.WithoutCancel(ctx)); err != nil || !t.state.Attends(step) {
		return nil, 0
	}
	return t.conclude(step, answer.Content.String(), wasCut(answer)), t.next
}

// conclude makes what follows of an answer, with what the step said before it broke off.
func (t *tracker) conclude(step workflow.Step, answer string, cut bool) []continuo.Entry {
	return t.state.Conclude(step, append(append([]string{}, t.pieces[step.Node.ID]...), answer), cut)
}

// sameAttempt reports whether a step attends to the attempt of another.
func sameAttempt(now, step workflow.Step) bool {
	return now.Kind == workflow.StepAttend && now.Node.ID == step.Node.ID && now.Visit == step.Visit && now.Attempt == step.Attempt
}

// leadsTo reports whether a step that is to be taken now is the one that was meant.
func leadsTo(now, step workflow.Step) bool {
	if step.Resumes && (now.Kind == workflow.StepAttend || now.Kind == workflow.StepWait) {
		now = now.After()
	}
	return now.Kind == workflow.StepBegin && now.Node.ID == step.Node.ID && now.Visit == step.Visit && now.Attempt == step.Attempt
}

// stepTurnID is the id of an attempt's turn: whoever goes on with the run can begin it once.
func stepTurnID(run continuo.Run, step workflow.Step) string {
	return keyedTurnID(run, fmt.Sprintf("%s/%s/%d/%d", run.ID, step.Node.ID, step.Visit, step.Attempt))
}

// ResumeRuns goes on with runs whose process is gone: those that run, of which nothing was heard for quiet, and
// that have no turn under way. It returns how many.
func (e *Engine) ResumeRuns(ctx context.Context, quiet time.Duration) (resumed int, err error) {
	running, err := e.Log.Runs().RunningRuns(ctx, time.Now().Add(-quiet), maxResumed)
	if err != nil {
		return 0, fmt.Errorf("look for runs that broke off: %w", err)
	}
	var failures error
	for _, run := range running {
		if e.isDriven(run.ID) {
			continue
		}
		underWay, err := e.runningTurn(ctx, run.ConversationID)
		if err == nil && !e.carries(ctx, run) {
			continue
		}
		if err == nil && (underWay == nil || underWay.RunID != run.ID) {
			err = e.drive(ctx, run, true)
			resumed++
		}
		failures = cmp.Or(failures, err)
	}
	return resumed, failures
}

// carries reports whether this program has what a run's steps need; of one that cannot be read it takes it for
// granted, so that it is ended.
func (e *Engine) carries(ctx context.Context, run continuo.Run) bool {
	if _, ok := continuo.CrewOf(run.WorkflowID); ok {
		t := newCrewTracker(e, run)
		err := t.read(ctx, run.FirstSeq, func(*continuo.Entry) bool { return true })
		return err != nil || e.canStaff(t.state.Crew) == nil
	}
	t := newTracker(e, run)
	return t.catchUp(ctx) != nil || e.canCarry(t.state.Workflow) == nil // the workflow may have been replaced
}

// maxResumed bounds how many runs one ResumeRuns looks at.
const maxResumed = 1000

// isDriven reports whether this process goes on with a run.
func (e *Engine) isDriven(runID string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[runID] != nil
}
