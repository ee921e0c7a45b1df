package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/internal/logtext"
	"github.com/continuo-log/continuo/engine/start"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

var _ durable.Brancher[workflow.Step] = (*workflowRun)(nil)

type workflowDecision = durable.Decision[workflow.Step]

// Execution makes the execution of a workflow's run.
func (rs *Runs) Execution(run continuo.Run) durable.Execution {
	return durable.Execute(rs.driver, run, durable.Machine[workflow.Step](newRun(rs, run)))
}

// resume gives a run a worker and returns its status.
func (rs *Runs) resume(ctx context.Context, run continuo.Run, detached bool) (*Status, error) {
	if err := rs.driver.Resume(ctx, run, detached); err != nil {
		return nil, err
	}
	return rs.status(ctx, run)
}

// resumeRecorded is resume after a change was recorded: a shutdown of this process is no error then, since another
// process resumes the run.
func (rs *Runs) resumeRecorded(ctx context.Context, run continuo.Run, detached bool) (*Status, error) {
	if err := rs.driver.Resume(ctx, run, detached); err != nil && !errors.Is(err, lifecycle.ErrClosing) {
		return nil, err
	}
	return rs.status(ctx, run)
}

// checkSupported looks up the agents, models and views of all steps of a workflow; durable.ErrUnsupported.
func (rs *Runs) checkSupported(w *workflow.Workflow) error {
	for i := range w.Nodes {
		node := &w.Nodes[i]
		if _, err := rs.catalog.Resolve(catalog.TurnSpec{Mode: continuo.ModeRun, Agent: node.Agent, Model: node.Model, ViewName: node.View}); err != nil {
			return fmt.Errorf("the step %s: %w; resume it on a process that has it, or add it to these settings", node.ID, orUnsupported(err))
		}
	}
	return nil
}

// orUnsupported turns the error of an unknown agent, model or view into a durable.ErrUnsupported. It returns other
// errors unchanged.
func orUnsupported(err error) error {
	if errors.Is(err, continuo.ErrInvalid) || errors.Is(err, continuo.ErrNotFound) {
		return fmt.Errorf("%w: %w", durable.ErrUnsupported, err)
	}
	return err
}

// Steps returns the steps that are due, which may run in parallel.
func (r *workflowRun) Steps() []workflow.Step { return r.State.Steps() }

// Describe says which attempt a step is.
func (r *workflowRun) Describe(step workflow.Step) durable.Step {
	described := durable.Step{
		Kind: durable.StepKind(step.Kind), Visit: step.Visit, Attempt: step.Attempt, Until: step.Until,
		ConversationID: cmp.Or(step.Branch, r.Run.ConversationID), Branched: step.InParallel || step.Branch != "",
	}
	if step.Node != nil {
		described.Name = step.Node.ID
	}
	return described
}

// Record makes the entries that follow without a turn.
func (r *workflowRun) Record() []continuo.Entry { return r.State.Record() }

// Begin runs an attempt. For an attempt in a branch it only records the beginning; the turn begins when the attempt
// is attended.
func (r *workflowRun) Begin(ctx context.Context, step workflow.Step) error {
	if step.Branch != "" && step.Kind == workflow.StepBegin {
		event, _ := r.State.BeginInBranch(step, step.Branch)
		_, err := r.Append(ctx, event)
		return err
	}
	chosen, err := r.runs.chooseFor(step.Node)
	if err != nil {
		return err
	}
	return r.runs.turns.RunStep(ctx, r.runs.driver, r.Run, r.Describe(step), start.Step{Chosen: chosen, Prepare: r.beginStep(step, chosen)})
}

// beginStep prepares the turn of an attempt: the runner, the cue, and the function that concludes its answer.
func (r *workflowRun) beginStep(step workflow.Step, chosen catalog.ResolvedTurn) start.Prepare {
	return func(ctx context.Context, _ continuo.Conversation) (*turn.Runner, turn.Input, error) {
		if err := r.CatchUp(ctx); err != nil {
			return nil, turn.Input{}, err
		}
		if !r.isDue(step) {
			return nil, turn.Input{}, durable.ErrStale
		}
		asked := step
		if step.Branch != "" {
			asked = r.State.WithHistory(step)
		}
		texts, err := r.State.Texts(asked)
		if err != nil {
			return nil, turn.Input{}, err
		}
		chosen.System = append(chosen.System, texts...)
		chosen.Policy = chosen.Policy.Merge(step.Node.Tools)
		runner := r.runs.catalog.Runner(chosen)
		runner.Limits.Ask = turn.AskWithoutLimit
		if schema := step.AnswerSchema(); schema != nil {
			runner.Answer = &turn.AnswerSchema{Name: step.Node.ID, Schema: schema}
		}
		input := turn.Input{Mode: chosen.Mode, AgentID: chosen.Agent, AskAgain: asked.Resumes}
		if step.Branch != "" { // its answer is concluded in the run's conversation, after the turn's end
			_, cue := r.State.BeginInBranch(asked, step.Branch)
			input.Cue = &cue
			return runner, input, nil
		}
		cue := r.State.Cue(step)
		input.Cue = &cue
		input.Conclude = func(answer *continuo.Entry) ([]continuo.Entry, int64) { return r.concludeTurn(ctx, step, answer) }
		return runner, input, nil
	}
}

// isDue reports whether the turn of an attempt is still to begin, by the entries that were read.
func (r *workflowRun) isDue(step workflow.Step) bool {
	now := r.Describe(r.State.Of(step.Node.ID))
	if step.Branch != "" {
		return now.Kind == durable.Attend && now.SameAttempt(r.Describe(step))
	}
	return now.LeadsTo(r.Describe(step))
}

// chooseFor resolves the settings of a node.
func (rs *Runs) chooseFor(node *workflow.Node) (catalog.ResolvedTurn, error) {
	c := catalog.TurnSpec{Mode: continuo.ModeRun, Agent: node.Agent, Model: node.Model, ViewName: node.View, UsualView: string(continuo.ModeRun), Step: true}
	found, err := rs.catalog.Resolve(c)
	if err != nil {
		return catalog.ResolvedTurn{}, fmt.Errorf("the step %s: %w", node.ID, orUnsupported(err))
	}
	return found, nil
}

// Lost decides on an attempt without a turn. An attempt in a branch was recorded before its turn, which begins now.
func (r *workflowRun) Lost(step workflow.Step) workflowDecision {
	if step.Branch != "" {
		return workflowDecision{Next: &step}
	}
	return r.afterFailure(step, r.failureOf(step, continuo.ReasonInterrupted))
}

// Ended decides on an attempt whose turn has ended.
func (r *workflowRun) Ended(ctx context.Context, step workflow.Step, ended continuo.Turn) (decision workflowDecision, err error) {
	if step.Branch != "" {
		if err := r.readBranch(ctx, step); err != nil {
			return decision, err
		}
	}
	switch next := step.After(); {
	case ended.State == continuo.TurnFinished && step.Branch != "":
		decision.Entries = r.concludeBranch(step)
	case ended.State == continuo.TurnFinished:
		decision.Entries = r.conclude(step, r.answers[step.Node.ID], r.cuts[step.Node.ID])
	case step.Retry:
		decision.Next, decision.Yield = &next, step.Branch == ""
	case ended.Reason == continuo.ReasonCancelled:
		decision.Entries = []continuo.Entry{r.State.Halt(fmt.Sprintf("the step %s was stopped", step.Node.ID))}
	default:
		decision = r.afterFailure(step, r.failureOf(step, ended.Reason))
	}
	return decision, nil
}

// afterFailure decides on an attempt that broke off: which entries record it, or that the next one begins.
func (r *workflowRun) afterFailure(step workflow.Step, failure continuo.TurnError) workflowDecision {
	next := step.After()
	return workflowDecision{Entries: r.State.AttemptFailed(step, failure, r.runs.log.Now()), Next: &next, Yield: true}
}

// concludeTurn makes the entries that follow a step's answer, and the seq at which they must be appended. The turn
// calls it while the run's worker waits for the turn. Where the log cannot be read there are no entries, and the
// answer is concluded when the run is read again.
func (r *workflowRun) concludeTurn(ctx context.Context, step workflow.Step, answer *continuo.Entry) ([]continuo.Entry, int64) {
	if err := r.CatchUp(context.WithoutCancel(ctx)); err != nil || !r.State.Attends(step) {
		return nil, 0
	}
	return r.conclude(step, answer.Content.String(), wasCut(answer)), r.Next()
}

// conclude makes the entries that follow an answer, which includes the parts that broke off before.
func (r *workflowRun) conclude(step workflow.Step, answer string, cut bool) []continuo.Entry {
	return r.State.Conclude(step, append(append([]string{}, r.pieces[step.Node.ID]...), answer), cut)
}

// Idle counts and logs that no step is due.
func (r *workflowRun) Idle(ctx context.Context) {
	rs := r.runs
	rs.metrics.RunIdle(r.State.Run)
	rs.options.Logger.InfoContext(ctx, "run_idle", "conversation_id", r.Run.ConversationID, "run_id", r.Run.ID,
		"state", r.State.Run, "reason", logtext.Reason(rs.options.LogText, r.State.Reason))
}

// IsSupported reports whether this process has the agents, models and views of the steps.
func (r *workflowRun) IsSupported(ctx context.Context) bool {
	return r.CatchUp(ctx) != nil || r.runs.checkSupported(r.State.Workflow) == nil // the workflow may have been replaced
}
