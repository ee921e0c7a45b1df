package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
)

type runCommand struct {
	Start   runStartCommand   `cmd:"" help:"Run a workflow, and show its progress."`
	List    runListCommand    `cmd:"" help:"List runs, the newest first."`
	Show    runShowCommand    `cmd:"" help:"Show the status of a run."`
	Resume  runResumeCommand  `cmd:"" help:"Resume a run that failed, was stopped, or was abandoned by its process."`
	Set     runSetCommand     `cmd:"" help:"Set a step's outputs by hand, and continue after it."`
	Retry   runRetryCommand   `cmd:"" help:"Execute a step again, and the steps that depend on it."`
	Skip    runSkipCommand    `cmd:"" help:"Skip a step, and continue the run."`
	Stop    runStopCommand    `cmd:"" help:"Stop a run until a person resumes it."`
	Cancel  runCancelCommand  `cmd:"" help:"End a run permanently."`
	Approve runApproveCommand `cmd:"" help:"Decide an approval that a run waits for, and continue the run."`
}

// runPage is the page size of a query for runs, runsSearched how many runs are searched for the beginning of an id.
const (
	runPage      = 200
	runsSearched = 10_000
)

// runs lists runs, the newest first, at most limit (0: all), and returns whether there are more.
func (w *services) runs(ctx context.Context, query continuo.RunQuery, limit int) (found []continuo.Run, more bool, err error) {
	query.ProjectID, query.Of, query.Limit = w.settings.Project, continuo.OfWorkflows, runPage
	found, more, err = pages(limit, runPage, func(last *continuo.Run) ([]continuo.Run, error) {
		if last != nil {
			query.Before = continuo.RunCursor{StartedAt: last.StartedAt, ID: last.ID}
		}
		return w.engine.Runs.List(ctx, query)
	})
	if err != nil {
		return nil, false, fmt.Errorf("list runs: %w", err)
	}
	return found, more, nil
}

// runChoice selects a run if none is named.
type runChoice struct {
	can    func(continuo.Run) bool
	none   string // the error if there is no such run
	newest bool   // of several it is the newest; otherwise the user has to name one
}

// findRun finds the run that an argument names: an id or its beginning, or @1, its position in the list.
func (w *services) findRun(ctx context.Context, name string, choice runChoice) (continuo.Run, error) {
	if name == "" {
		return w.chooseRun(ctx, choice)
	}
	if position, ok := strings.CutPrefix(name, "@"); ok {
		return w.nthRun(ctx, name, position)
	}
	status, err := w.engine.Runs.Get(ctx, w.scope(), name)
	if err == nil {
		if crewID, ok := continuo.CrewOf(status.WorkflowID); ok {
			return continuo.Run{}, usage("run %s is a cycle of the crew %s: see continuo crew status %s", name, crewID, crewID)
		}
		return status.Run, nil
	}
	if !errors.Is(err, continuo.ErrNotFound) {
		return continuo.Run{}, err
	}
	found, err := w.filterRuns(ctx, func(run continuo.Run) bool { return strings.HasPrefix(run.ID, name) })
	switch {
	case err != nil:
		return continuo.Run{}, err
	case len(found) == 0:
		return continuo.Run{}, fmt.Errorf("run %s: %w in project %s; continuo run list shows what there is", term.OneLine(name, 60), continuo.ErrNotFound, w.settings.Project)
	case len(found) > 1:
		return continuo.Run{}, usage("run %s: %s begin so, such as %s and %s; write more of the id", name, term.Count(len(found), "id"), found[0].ID, found[1].ID)
	}
	return found[0], nil
}

// chooseRun finds the run if none is named.
func (w *services) chooseRun(ctx context.Context, choice runChoice) (continuo.Run, error) {
	found, err := w.filterRuns(ctx, choice.can)
	switch {
	case err != nil:
		return continuo.Run{}, err
	case len(found) == 0:
		return continuo.Run{}, fmt.Errorf("%w: project %s has no run %s; continuo run list shows what there is", continuo.ErrNotFound, w.settings.Project, choice.none)
	case len(found) > 1 && !choice.newest:
		return continuo.Run{}, usage("%s can be meant, such as %s and %s: name one", term.Count(len(found), "run"), found[0].ID, found[1].ID)
	}
	return found[0], nil
}

// filterRuns lists the runs for which a condition holds, the newest first.
func (w *services) filterRuns(ctx context.Context, holds func(continuo.Run) bool) ([]continuo.Run, error) {
	all, _, err := w.runs(ctx, continuo.RunQuery{}, runsSearched)
	return slices.DeleteFunc(all, func(run continuo.Run) bool { return !holds(run) }), err
}

// nthRun finds the run at a position of the list, from 1.
func (w *services) nthRun(ctx context.Context, name, position string) (continuo.Run, error) {
	n, err := strconv.Atoi(position)
	if err != nil || n < 1 {
		return continuo.Run{}, usage("run %q: @ is followed by a position in the list of runs, such as @1", name)
	}
	found, _, err := w.runs(ctx, continuo.RunQuery{}, n)
	if err != nil {
		return continuo.Run{}, err
	}
	if len(found) < n {
		return continuo.Run{}, fmt.Errorf("run %s: %w: project %s has %s", name, continuo.ErrNotFound, w.settings.Project, term.Count(len(found), "run"))
	}
	return found[n-1], nil
}

// The choices of commands if no run is named.
func newestRun() runChoice {
	return runChoice{can: func(continuo.Run) bool { return true }, none: "yet", newest: true}
}

func unfinishedRun(newest bool) runChoice {
	return runChoice{can: func(run continuo.Run) bool { return !run.State.IsOver() }, none: "that is not over", newest: newest}
}

func waitingRun() runChoice {
	return runChoice{can: func(run continuo.Run) bool { return run.State == continuo.RunWaiting }, none: "that waits for a decision"}
}

func runInProgress() runChoice {
	can := func(run continuo.Run) bool {
		return run.State == continuo.RunRunning || run.State == continuo.RunWaiting
	}
	return runChoice{can: can, none: "that is in progress"}
}

type runShowCommand struct {
	ID   string `arg:"" optional:"" name:"run" help:"Which one: id, the beginning of an id, or @1. Default: the newest."`
	JSON bool   `help:"Write JSON, as GET /api/runs/ID does."`
}

func (runShowCommand) Help() string {
	return `Shows how far each step of a run is, what it gave, why the run failed or stopped, and what it has come to; what gets long is cut, and --json has all of it. Its messages are in its conversation: see continuo conversations show.

Examples:

    continuo run show
    continuo run show @2
    continuo run show --json | jq .outputs`
}

// Run prints the status.
func (s *runShowCommand) Run(ctx context.Context, a *app, w *services) error {
	run, err := w.findRun(ctx, s.ID, newestRun())
	if err != nil {
		return err
	}
	status, err := w.engine.Runs.Get(ctx, w.scope(), run.ID)
	if err != nil {
		return err
	}
	return a.show(s.JSON, status, func() { a.printRun(*status, w.edgesOf(ctx, run)) })
}
