package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/workflow"
)

// RepairKind says what a RunRepair changes.
type RepairKind string

// The repairs of a run.
const (
	RepairSet     RepairKind = "set"     // a step finishes with outputs that are given
	RepairRetry   RepairKind = "retry"   // a step is carried out again, and what depends on it
	RepairSkip    RepairKind = "skip"    // the run goes on behind a step
	RepairReplace RepairKind = "replace" // the run goes on by a corrected workflow
)

// RunRepair changes a run that failed or was stopped.
type RunRepair struct {
	Kind    RepairKind
	Node    string          // of all but RepairReplace
	Outputs json.RawMessage // of RepairSet, a JSON object
	// Workflow is the text of the corrected workflow, File what complaints about it call it, and Drop the steps that have
	// finished and that it does not have any more; of RepairReplace.
	Workflow []byte
	File     string
	Drop     []string
	// By names who repairs it, for the log.
	By string
	// Hold leaves the run as it is: it goes on when somebody resumes it.
	Hold bool
	// Key is the idempotency key; "" for none.
	Key string
}

// RepairRun changes a run that failed or was stopped, and goes on with it. ErrRunUnderWay, ErrRunWaits and ErrRunOver say
// that it is in another state, workflow.ErrNotRepairable that the step is.
func (e *Engine) RepairRun(ctx context.Context, run continuo.Run, repair RunRepair, detached bool) (*RunStatus, error) {
	if e.isClosed() {
		return nil, ErrClosing
	}
	once := repair.once(run)
	corrected, err := repair.read(run)
	if err != nil {
		return nil, err
	}
	changes := func(s *workflow.State) ([]continuo.Entry, error) { return e.repairs(s, repair, corrected) }
	if err := e.prepareRepair(ctx, run, once, corrected, changes); err != nil {
		return nil, err
	}
	if err := newWorkflowRun(e, run).Change(ctx, once, changes); err != nil {
		return nil, repairedOtherwise(err)
	}
	if repair.Hold {
		return e.runStatus(ctx, run)
	}
	return e.resumeRecorded(ctx, run, detached)
}

// prepareRepair refuses a repair that cannot be made before anything is changed, keeps the corrected workflow's text, and
// ends the turns of a run that was stopped a moment ago.
func (e *Engine) prepareRepair(ctx context.Context, run continuo.Run, once durable.Once, corrected *workflow.Workflow, changes func(*workflow.State) ([]continuo.Entry, error)) error {
	if done, err := newWorkflowRun(e, run).IsDone(ctx, once); err != nil || done {
		return repairedOtherwise(err)
	}
	if err := e.changeRun(ctx, run, func(s *workflow.State) ([]continuo.Entry, error) { _, err := changes(s); return nil, err }); err != nil {
		return err
	}
	if corrected != nil {
		if _, err := e.Log.PutText(ctx, corrected.Text); err != nil {
			return err
		}
	}
	return e.stopTurnOf(ctx, run)
}

// repairedOtherwise says of a key that was used before that it made another repair.
func repairedOtherwise(err error) error {
	if errors.Is(err, continuo.ErrKeyReused) {
		return fmt.Errorf("%w: it repaired the run in another way", err)
	}
	return err
}

// repairs makes the entries of a repair.
func (e *Engine) repairs(s *workflow.State, repair RunRepair, corrected *workflow.Workflow) ([]continuo.Entry, error) {
	switch {
	case s.Run.IsOver():
		return nil, fmt.Errorf("run %s: %w: it is %s; start another one", s.RunID, ErrRunOver, s.Run)
	case s.Run == continuo.RunWaiting:
		return nil, fmt.Errorf("run %s: %w in %s: decide it, or stop the run first", s.RunID, ErrRunWaits, names(s.Waiting()))
	case s.Run == continuo.RunRunning:
		return nil, fmt.Errorf("run %s: %w: stop it first (continuo run stop %s)", s.RunID, ErrRunUnderWay, s.RunID)
	}
	entries, err := repair.entries(s, corrected)
	if err != nil || repair.Hold {
		return entries, err
	}
	used := s.Workflow
	if corrected != nil {
		used = corrected
	}
	if err := e.checkSupported(used); err != nil {
		return nil, err
	}
	return append(entries, s.Resume()), nil
}

// entries makes the entry of the change itself; none where the workflow is the one that the run has.
func (r RunRepair) entries(s *workflow.State, corrected *workflow.Workflow) ([]continuo.Entry, error) {
	var entry continuo.Entry
	var err error
	changed := true
	switch r.Kind {
	case RepairSet:
		entry, err = s.Set(r.Node, r.Outputs, r.By)
	case RepairRetry:
		entry, err = s.Again(r.Node, r.By)
	case RepairSkip:
		entry, err = s.Skip(r.Node, r.By)
	default:
		entry, changed, err = s.Replace(corrected, r.Drop, r.By)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", s.RunID, err)
	}
	if !changed {
		return nil, nil
	}
	return []continuo.Entry{entry}, nil
}

// read reads the corrected workflow; nil for other repairs. A text that names no id has the run's.
func (r RunRepair) read(run continuo.Run) (*workflow.Workflow, error) {
	if r.Kind != RepairReplace {
		return nil, nil
	}
	read, err := workflow.Parse(run.WorkflowID+".yaml", r.Workflow, workflow.Known{Any: true})
	if problems, wrong := err.(*workflow.Problems); wrong && r.File != "" {
		for i := range problems.List {
			problems.List[i].File = r.File
		}
	}
	return read, err
}

// once is what a repair is known again by.
func (r RunRepair) once(run continuo.Run) durable.Once {
	if r.Key == "" {
		return durable.Once{}
	}
	asked := append([]string{string(r.Kind), r.Node, string(r.Outputs), string(r.Workflow), fmt.Sprint(r.Hold)}, slices.Sorted(slices.Values(r.Drop))...)
	return durable.Once{Key: "run/" + run.ID + "/repair/" + r.Key, Identity: hashOf(string(rawjson.MustMarshal(asked)))}
}

// RunWorkflow is the workflow that a run goes by now.
func (e *Engine) RunWorkflow(ctx context.Context, run continuo.Run) (*workflow.Workflow, error) {
	r := newWorkflowRun(e, run)
	if err := r.CatchUp(ctx); err != nil {
		return nil, err
	}
	return r.State.Workflow, nil
}
