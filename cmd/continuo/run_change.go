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
	ID string `arg:"" optional:"" name:"run" help:"Which one: id, the beginning of an id, or @1. Default: the newest that may go on."`
}

func (runResumeCommand) Help() string {
	return `Goes on with a run from where it broke off: steps that have finished are not done again. One that another program carries out is only shown; one that waits for a decision asks for it. Ctrl-C stops the run, unless another program carries it out; a second one leaves at once.

Examples:

    continuo run resume
    continuo run resume run_0199c3`
}

// Run goes on with the run and follows it.
func (r *runResumeCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wireTurns(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	run, err := w.findRun(ctx, r.ID, unfinishedRun(true))
	if err != nil {
		return err
	}
	after, err := w.newestSeq(ctx, run)
	if err != nil {
		return err
	}
	return a.watchRun(ctx, w, r.runFlags, newTypist(a.in), after, func(ctx context.Context) (*engine.RunStatus, error) {
		status, err := w.engine.ResumeRun(ctx, run, false)
		if errors.Is(err, engine.ErrRunWaits) { // the person is asked then
			return w.engine.Run(ctx, w.settings.Project, run.ID)
		}
		return status, err
	})
}

// newestSeq is the seq of the newest entry of a run's conversation: what comes after it is new.
func (w *wired) newestSeq(ctx context.Context, run continuo.Run) (int64, error) {
	conversation, err := w.log.Conversation(ctx, run.ConversationID)
	return conversation.LastSeq, err
}

// wireTurns puts everything together for a command in which turns run, and closes what killed programs left behind.
func (a *app) wireTurns(ctx context.Context) (*wired, error) {
	settings, err := a.loadSettings()
	if err != nil {
		return nil, err
	}
	w, err := a.wireWith(ctx, settings, wiring{turns: true})
	if err != nil {
		return nil, err
	}
	if _, err := w.engine.Recover(ctx); err != nil {
		a.note("%s %s", a.notePaint.yellow("note:"), err)
	}
	return w, nil
}

type runApproveCommand struct {
	runFlags
	ID      string `arg:"" optional:"" name:"run" help:"Which one: id, the beginning of an id, or @1. Default: the only one that waits."`
	Node    string `arg:"" optional:"" help:"The step that asks. Default: the only one."`
	Reject  bool   `help:"Say no."`
	Comment string `placeholder:"TEXT" help:"What else the run is told."`
}

func (runApproveCommand) Help() string {
	return `Decides what a run waits for, and goes on with it. The first decision counts.

Examples:

    continuo run approve
    continuo run approve --reject --comment "The second paragraph is wrong."
    continuo run approve @1 release`
}

// Run decides and follows the run.
func (r *runApproveCommand) Run(ctx context.Context, a *app) error {
	w, err := a.wireTurns(ctx)
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
		return w.engine.DecideRun(ctx, run, engine.RunDecision{Node: r.Node, Approved: !r.Reject, Comment: r.Comment}, false)
	})
}

type runStopCommand struct {
	ID   string `arg:"" optional:"" name:"run" help:"Which one: id, the beginning of an id, or @1. Default: the only one under way."`
	JSON bool   `help:"Write the status as JSON."`
}

func (runStopCommand) Help() string {
	return `Stops a run, in whatever program it goes on, until somebody resumes it. What its step has said is kept.

Examples:

    continuo run stop
    continuo run stop run_0199c3`
}

// Run stops the run.
func (r *runStopCommand) Run(ctx context.Context, a *app) error {
	return a.endRun(ctx, r.ID, runUnderWay(), r.JSON, func(w *wired, run continuo.Run) (*engine.RunStatus, error) {
		return w.engine.StopRun(ctx, run, "a person stopped it")
	})
}

type runCancelCommand struct {
	ID   string `arg:"" name:"run" help:"Which one: id, the beginning of an id, or @1. It has to be named: nothing takes this back."`
	JSON bool   `help:"Write the status as JSON."`
}

func (runCancelCommand) Help() string {
	return `Ends a run for good, in whatever program it goes on. What was said stays in its conversation.

Examples:

    continuo run cancel @1
    continuo run cancel run_0199c3`
}

// Run cancels the run.
func (r *runCancelCommand) Run(ctx context.Context, a *app) error {
	return a.endRun(ctx, r.ID, unfinishedRun(false), r.JSON, func(w *wired, run continuo.Run) (*engine.RunStatus, error) {
		return w.engine.CancelRun(ctx, run)
	})
}

// endRun finds a run, has it ended, and says how it stands then.
func (a *app) endRun(ctx context.Context, name string, choice runChoice, asJSON bool, end func(*wired, continuo.Run) (*engine.RunStatus, error)) error {
	w, err := a.wire(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	run, err := w.findRun(ctx, name, choice)
	if err != nil {
		return err
	}
	status, err := end(w, run)
	if err != nil {
		return err
	}
	if asJSON {
		return a.json(status)
	}
	a.print("%s is %s", status.ID, stateWords(status.State))
	if next := nextCommand(*status, time.Now()); next != "" {
		a.note("%s", next)
	}
	return nil
}
