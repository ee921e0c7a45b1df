package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/durable"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/workflow"
)

// RepairKind is the kind of change that a Repair makes.
type RepairKind string

// The repairs of a run.
const (
	RepairSet     RepairKind = "set"     // a step finishes with outputs that are given
	RepairRetry   RepairKind = "retry"   // a step runs again, with all that depends on it
	RepairSkip    RepairKind = "skip"    // the run continues after a step, without its outputs
	RepairReplace RepairKind = "replace" // the run continues with a corrected workflow
)

// Repair changes a run that failed or was stopped.
type Repair struct {
	Kind    RepairKind
	Node    string          // of all but RepairReplace
	Outputs json.RawMessage // of RepairSet, a JSON object
	// Workflow is the text of the corrected workflow, File its name in error messages, and Drop the finished steps that
	// it no longer has. Only for RepairReplace.
	Workflow []byte
	File     string
	Drop     []string
	// By names the person who repairs the run, for the log.
	By string
	// Hold leaves the run stopped or failed until a person resumes it.
	Hold bool
	// Key is the idempotency key; "" for none.
	Key string
}

// Repair changes a run that failed or was stopped, and resumes it. ErrInProgress, ErrWaiting and ErrOver say
// that the run is in another state, workflow.ErrNotRepairable that the step is.
func (rs *Runs) Repair(ctx context.Context, run continuo.Run, repair Repair, detached bool) (*Status, error) {
	if rs.life.IsClosed() {
		return nil, lifecycle.ErrClosing
	}
	once := repair.once(run)
	corrected, err := repair.read(run)
	if err != nil {
		return nil, err
	}
	changes := func(s *workflow.State) ([]continuo.Entry, error) { return rs.repairs(s, repair, corrected) }
	if err := rs.prepareRepair(ctx, run, once, corrected, changes); err != nil {
		return nil, err
	}
	if err := newRun(rs, run).Change(ctx, once, changes); err != nil {
		return nil, repairedOtherwise(err)
	}
	if repair.Hold {
		return rs.status(ctx, run)
	}
	return rs.resumeRecorded(ctx, run, detached)
}

// prepareRepair refuses an impossible repair before anything is changed, stores the corrected workflow's text, and
// stops turns that are still running although the run was stopped.
func (rs *Runs) prepareRepair(ctx context.Context, run continuo.Run, once durable.Once, corrected *workflow.Workflow, changes func(*workflow.State) ([]continuo.Entry, error)) error {
	if done, err := newRun(rs, run).IsDone(ctx, once); err != nil || done {
		return repairedOtherwise(err)
	}
	if err := rs.change(ctx, run, func(s *workflow.State) ([]continuo.Entry, error) { _, err := changes(s); return nil, err }); err != nil {
		return err
	}
	if corrected != nil {
		if _, err := rs.log.PutText(ctx, corrected.Text); err != nil {
			return err
		}
	}
	return rs.stopTurnOf(ctx, run)
}

// repairedOtherwise adds to the error of a reused key that the key made another repair.
func repairedOtherwise(err error) error {
	if errors.Is(err, continuo.ErrKeyReused) {
		return fmt.Errorf("%w: it repaired the run in another way", err)
	}
	return err
}

// repairs makes the entries of a repair.
func (rs *Runs) repairs(s *workflow.State, repair Repair, corrected *workflow.Workflow) ([]continuo.Entry, error) {
	switch {
	case s.Run.IsOver():
		return nil, fmt.Errorf("run %s: %w: it is %s; start another one", s.RunID, ErrOver, s.Run)
	case s.Run == continuo.RunWaiting:
		return nil, fmt.Errorf("run %s: %w in %s: decide it, or stop the run first", s.RunID, ErrWaiting, names(s.Waiting()))
	case s.Run == continuo.RunRunning:
		return nil, fmt.Errorf("run %s: %w: stop it first (continuo run stop %s)", s.RunID, ErrInProgress, s.RunID)
	}
	entries, err := repair.entries(s, corrected)
	if err != nil || repair.Hold {
		return entries, err
	}
	used := s.Workflow
	if corrected != nil {
		used = corrected
	}
	if err := rs.checkSupported(used); err != nil {
		return nil, err
	}
	return append(entries, s.Resume()), nil
}

// entries makes the entry of the change itself; none where the corrected workflow equals the present one.
func (r Repair) entries(s *workflow.State, corrected *workflow.Workflow) ([]continuo.Entry, error) {
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

// read parses the corrected workflow; nil for other repairs. A text without an id gets the run's.
func (r Repair) read(run continuo.Run) (*workflow.Workflow, error) {
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

// once is the idempotency record of a repair.
func (r Repair) once(run continuo.Run) durable.Once {
	if r.Key == "" {
		return durable.Once{}
	}
	asked := append([]string{string(r.Kind), r.Node, string(r.Outputs), string(r.Workflow), fmt.Sprint(r.Hold)}, slices.Sorted(slices.Values(r.Drop))...)
	return durable.Once{Key: "run/" + run.ID + "/repair/" + r.Key, Identity: brief.Hash(string(rawjson.MustMarshal(asked)))}
}

// WorkflowOf is the workflow that a run uses now.
func (rs *Runs) WorkflowOf(ctx context.Context, run continuo.Run) (*workflow.Workflow, error) {
	r := newRun(rs, run)
	if err := r.CatchUp(ctx); err != nil {
		return nil, err
	}
	return r.State.Workflow, nil
}
