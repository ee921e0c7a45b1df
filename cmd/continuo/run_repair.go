package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/user"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/workflow"
)

// repairFlags are those of the commands that repair a step.
type repairFlags struct {
	runFlags
	NoResume bool `help:"Do not resume the run; continuo run resume does."`
}

// repairArgs name the step to repair.
type repairArgs struct {
	repairFlags
	ID   string `arg:"" name:"run" help:"Which run, failed or stopped: id, the beginning of an id, or @1."`
	Node string `arg:"" name:"step" help:"Which step."`
}

type runSetCommand struct {
	repairArgs
	Output []string `sep:"none" placeholder:"NAME=VALUE" help:"An output of the step; lists and objects as JSON; NAME=@FILE reads a file. May be repeated."`
}

func (runSetCommand) Help() string {
	return `Finishes a step of a run that failed or was stopped with the given outputs, and continues after it. The outputs must match the step's declaration; its check is not evaluated. Finished steps that used other outputs of it are executed again. A step that declares no outputs has one, text.

Examples:

    continuo run set @1 review --output verdict=good --output score=7
    continuo run set @1 draft --output text=@draft.md
    continuo run set @1 plan --output 'parts=["one","two"]' --no-resume`
}

// Run sets the outputs and follows the run.
func (r *runSetCommand) Run(ctx context.Context, a *app) error {
	return a.repairStep(ctx, r.repairArgs, func(of *workflow.Workflow) (repair engine.RunRepair, err error) {
		repair.Kind = engine.RepairSet
		repair.Outputs, err = givenOutputs(of, r.Node, r.Output)
		return repair, err
	})
}

// givenOutputs reads the outputs of a step from flags, each as the step declares it.
func givenOutputs(of *workflow.Workflow, step string, given []string) (json.RawMessage, error) {
	fields := map[string]workflow.Field{}
	if node := of.Node(step); node != nil {
		for _, field := range node.Gives() {
			fields[field.Name] = field
		}
	}
	values := map[string]json.RawMessage{}
	for _, one := range given {
		name, text, ok := strings.Cut(one, "=")
		if !ok {
			return nil, usage("--output %s: write NAME=VALUE", term.OneLine(one, 60))
		}
		field, declared := fields[name]
		if !declared { // the error of the run lists the declared ones
			values[name] = json.RawMessage("null")
			continue
		}
		value, err := inputValue(field, text)
		if err != nil {
			return nil, usage("--output %s: %w", name, err)
		}
		values[name] = value
	}
	return rawjson.Marshal(values)
}

type runRetryCommand struct{ repairArgs }

func (runRetryCommand) Help() string {
	return `Executes a step of a run that failed or was stopped again, from its beginning, and then the steps that depend on it. Other finished steps are not executed again.

Examples:

    continuo run retry @1 review
    continuo run retry run_0199c3 review --no-resume`
}

// Run repeats the step and follows the run.
func (r *runRetryCommand) Run(ctx context.Context, a *app) error {
	return a.repairStep(ctx, r.repairArgs, func(*workflow.Workflow) (engine.RunRepair, error) {
		return engine.RunRepair{Kind: engine.RepairRetry}, nil
	})
}

type runSkipCommand struct{ repairArgs }

func (runSkipCommand) Help() string {
	return `Continues a run that failed or was stopped without one of its steps. The step has no outputs: where a condition, a check or an input needs them, the command reports it, and continuo run set sets them.

Examples:

    continuo run skip @1 views`
}

// Run skips the step and follows the run.
func (r *runSkipCommand) Run(ctx context.Context, a *app) error {
	return a.repairStep(ctx, r.repairArgs, func(*workflow.Workflow) (engine.RunRepair, error) {
		return engine.RunRepair{Kind: engine.RepairSkip}, nil
	})
}

// repairStep repairs a step and follows the run.
func (a *app) repairStep(ctx context.Context, args repairArgs, makes func(*workflow.Workflow) (engine.RunRepair, error)) error {
	w, err := a.wireTurns(ctx, true)
	if err != nil {
		return err
	}
	defer w.Close()
	run, err := w.findRun(ctx, args.ID, unfinishedRun(false))
	if err != nil {
		return err
	}
	of, err := w.engine.Runs.WorkflowOf(ctx, run)
	if err != nil {
		return err
	}
	repair, err := makes(of)
	if err != nil {
		return err
	}
	repair.Node = args.Node
	return a.repairRun(ctx, w, run, args.repairFlags, repair)
}

// repairRun repairs a run and follows it, or prints its state if it does not resume.
func (a *app) repairRun(ctx context.Context, w *services, run continuo.Run, flags repairFlags, repair engine.RunRepair) error {
	repair.By, repair.Hold = userName(), flags.NoResume
	after, err := w.newestSeq(ctx, run)
	if err != nil {
		return err
	}
	does := func(ctx context.Context) (*engine.RunStatus, error) {
		return w.engine.Runs.Repair(ctx, run, repair, false)
	}
	if !repair.Hold {
		return a.watchRun(ctx, w, flags.runFlags, newTypist(a.in), after, does)
	}
	status, err := does(ctx)
	if err != nil {
		return err
	}
	return a.show(flags.JSON, status, func() {
		a.print("%s is %s", status.ID, stateText(status.State))
		a.note("Continue with: continuo run resume %s", status.ID)
	})
}

// userName is the user's name, for the log.
func userName() string {
	if actor, err := user.Current(); err == nil && actor.Username != "" {
		return "user " + actor.Username
	}
	return "command line"
}

// repairCommands says how to resume a failed run: the commands for the step that failed, and why.
func repairCommands(status engine.RunStatus) string {
	resume := "continuo run resume " + status.ID
	for _, node := range status.Nodes {
		switch {
		case node.State != workflow.NodeFailed:
		case node.Refused > 0:
			return fmt.Sprintf("Set its outputs: continuo run set %s %s --output NAME=VALUE\nOr correct the workflow: %s --workflow FILE\nOr ask again: %s",
				status.ID, node.ID, resume, resume)
		case node.Question == "":
			return fmt.Sprintf("Continue with: %s\nOr begin the step again: continuo run retry %s %s", resume, status.ID, node.ID)
		}
	}
	return fmt.Sprintf("Continue with: %s\nOr correct the workflow: %s --workflow FILE", resume, resume)
}
