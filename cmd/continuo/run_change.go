package main

import (
	"context"
	"errors"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

type runResumeCommand struct {
	runFlags
	ID       string   `arg:"" optional:"" name:"run" help:"The run: its id, the beginning of it, or @1. Default: the newest that can continue."`
	Workflow string   `placeholder:"FILE" help:"Continue with this corrected workflow; for a run that failed or was stopped."`
	Drop     []string `placeholder:"STEP" help:"A step that has finished and is not in the corrected workflow any more. May be repeated."`
}

func (runResumeCommand) Help() string {
	return `Goes on with a run from where it broke off: steps that have finished are not done again. One that another program carries out is only shown; one that waits for a decision asks for it. Ctrl-C stops the run, unless another program carries it out; a second one leaves at once.

A run goes by the workflow as it was when the run began. --workflow replaces it: steps that have finished keep their outputs and are not done again; a step that broke off begins again where the file says something else of it.

Examples:

    continuo run resume
    continuo run resume run_0199c3
    continuo run resume run_0199c3 --workflow .continuo/workflows/report.yaml`
}

// Run resumes the run and follows it.
func (r *runResumeCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wireTurns(ctx, true)
	if err != nil {
		return err
	}
	defer w.Close()
	run, err := w.findRun(ctx, r.ID, unfinishedRun(true))
	if err != nil {
		return err
	}
	if r.Workflow != "" {
		text, err := readBounded(r.Workflow)
		if err != nil {
			return err
		}
		repair := engine.RunRepair{Kind: engine.RepairReplace, Workflow: text, File: r.Workflow, Drop: r.Drop}
		return a.repairRun(ctx, w, run, repairFlags{runFlags: r.runFlags}, repair)
	}
	if len(r.Drop) > 0 {
		return usage("--drop goes with --workflow")
	}
	after, err := w.newestSeq(ctx, run)
	if err != nil {
		return err
	}
	return a.watchRun(ctx, w, r.runFlags, newTypist(a.in), after, func(ctx context.Context) (*engine.RunStatus, error) {
		status, err := w.engine.Runs.Resume(ctx, run, false)
		if errors.Is(err, engine.ErrRunWaits) { // the person is asked then
			return w.engine.Runs.Get(ctx, w.scope(), run.ID)
		}
		return status, err
	})
}

// newestSeq is the seq of the newest entry of a run's conversation: what comes after it is new.
func (w *services) newestSeq(ctx context.Context, run continuo.Run) (int64, error) {
	conversation, err := w.engine.Conversations.Conversation(ctx, run.ConversationID)
	return conversation.LastSeq, err
}

// wireTurns builds the services for a command in which turns run, and recovers what killed programs left. A command
// that begins no conversation requires an existing store.
func (a *app) wireTurns(ctx context.Context, existing bool) (*services, error) {
	settings, err := a.loadSettings()
	if err != nil {
		return nil, err
	}
	w, err := a.wireWith(ctx, settings, buildOptions{turns: true, existing: existing})
	if err != nil {
		return nil, err
	}
	if _, err := w.engine.Turns.Recover(ctx); err != nil {
		a.note("%s %s", a.notePaint.Yellow("note:"), err)
	}
	return w, nil
}

type runApproveCommand struct {
	runFlags
	ID      string `arg:"" optional:"" name:"run" help:"Which one: id, the beginning of an id, or @1. Default: the only one that waits."`
	Node    string `arg:"" optional:"" help:"The step that asks. Default: the only one."`
	Call    string `placeholder:"ID" help:"The tool call to decide. Default: the only one."`
	Reject  bool   `help:"Deny it."`
	Comment string `placeholder:"TEXT" help:"A comment that is recorded with the decision."`
}

func (runApproveCommand) Help() string {
	return `Decides what a run waits for, and continues it: the question of a step, or whether a call of a tool may run. The first decision counts. Where several are waited for, the error lists them: name the step, or the call with --call.

Examples:

    continuo run approve
    continuo run approve --reject --comment "The second paragraph is wrong."
    continuo run approve @1 release`
}

// Run decides and follows the run.
func (r *runApproveCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wireTurns(ctx, true)
	if err != nil {
		return err
	}
	defer w.Close()
	run, err := w.findRun(ctx, r.ID, waitingRun())
	if err != nil {
		return err
	}
	after, err := w.newestSeq(ctx, run)
	if err != nil {
		return err
	}
	return a.watchRun(ctx, w, r.runFlags, newTypist(a.in), after, func(ctx context.Context) (*engine.RunStatus, error) {
		return w.engine.Runs.Decide(ctx, run, engine.RunDecision{Node: r.Node, Call: r.Call, Approved: !r.Reject, Comment: r.Comment}, false)
	})
}

type runStopCommand struct {
	ID   string `arg:"" optional:"" name:"run" help:"Which one: id, the beginning of an id, or @1. Default: the only one in progress."`
	JSON bool   `help:"Write the status as JSON."`
}

func (runStopCommand) Help() string {
	return `Stops a run, in whatever program it runs, until a client resumes it. The text of its step so far is kept.

Examples:

    continuo run stop
    continuo run stop run_0199c3`
}

// Run stops the run.
func (r *runStopCommand) Run(ctx context.Context, a *app, w *services) error {
	return a.endRun(ctx, w, r.ID, runInProgress(), r.JSON, func(run continuo.Run) (*engine.RunStatus, error) {
		return w.engine.Runs.Stop(ctx, run, "a person stopped it")
	})
}

type runCancelCommand struct {
	ID   string `arg:"" name:"run" help:"The run: its id, the beginning of it, or @1. Required, because this cannot be undone."`
	JSON bool   `help:"Write the status as JSON."`
}

func (runCancelCommand) Help() string {
	return `Ends a run permanently, in whatever program it runs. Its messages stay in its conversation.

Examples:

    continuo run cancel @1
    continuo run cancel run_0199c3`
}

// Run cancels the run.
func (r *runCancelCommand) Run(ctx context.Context, a *app, w *services) error {
	return a.endRun(ctx, w, r.ID, unfinishedRun(false), r.JSON, func(run continuo.Run) (*engine.RunStatus, error) {
		return w.engine.Runs.Cancel(ctx, run)
	})
}

// endRun finds a run, ends it, and prints its state.
func (a *app) endRun(ctx context.Context, w *services, name string, choice runChoice, asJSON bool, end func(continuo.Run) (*engine.RunStatus, error)) error {
	run, err := w.findRun(ctx, name, choice)
	if err != nil {
		return err
	}
	status, err := end(run)
	if err != nil {
		return err
	}
	return a.show(asJSON, status, func() {
		a.print("%s is %s", status.ID, stateText(status.State))
		if next := nextCommand(*status, time.Now()); next != "" {
			a.note("%s", next)
		}
	})
}
