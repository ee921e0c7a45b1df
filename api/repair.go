package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// repairOperations are those that repair one step of a run.
func (s *Service) repairOperations() []Operation {
	const run = "/api/runs/{run}"
	answers := answers(accepted("The state of the run."), shared(http.StatusConflict, "NotRepairable"))
	return []Operation{
		define(Operation{
			ID: "setStep", Method: "POST", Path: run + "/set", Tag: "runs", Summary: "set a step's outputs by hand", Answers: answers,
		}, s.SetStep),
		define(Operation{
			ID: "retryStep", Method: "POST", Path: run + "/retry", Tag: "runs", Summary: "run a step again, and the steps that depend on it", Answers: answers,
		}, s.RetryStep),
		define(Operation{
			ID: "skipStep", Method: "POST", Path: run + "/skip", Tag: "runs", Summary: "skip a step of a run", Answers: answers,
		}, s.SkipStep),
	}
}

// RunResumeRequest is a request to resume a run.
type RunResumeRequest struct {
	RunPath
	Once
	// The text of a corrected workflow. It must contain the finished steps, with the outputs that they gave; they keep
	// these. A step that broke off begins again where the text changes it.
	Workflow *string `json:"workflow,omitempty"`
	// The finished steps that `workflow` no longer contains.
	Drop []string `json:"drop,omitempty"`
}

// Check refuses steps to drop without a workflow.
func (in *RunResumeRequest) Check() error {
	if in.Workflow == nil && len(in.Drop) > 0 {
		return Refuse("drop", "drop goes with workflow: it names steps that the corrected workflow does not have any more")
	}
	return nil
}

// ResumeRun resumes a run.
//
// One that failed or was stopped resumes from where it broke off, as does one whose process is gone; no finished step is
// executed again. A run that is running is left unchanged. With `workflow` the run continues by a corrected workflow; it
// must have failed or been stopped.
func (s *Service) ResumeRun(ctx context.Context, scope continuo.Scope, in RunResumeRequest) (*engine.RunStatus, error) {
	return s.changeRun(ctx, scope, in.RunPath, func(run continuo.Run) (*engine.RunStatus, error) {
		if in.Workflow == nil {
			return s.Engine.Runs.Resume(ctx, run, true)
		}
		repair := engine.RunRepair{Kind: engine.RepairReplace, Workflow: []byte(*in.Workflow), Drop: in.Drop, Key: string(in.Key)}
		return s.repairRun(ctx, scope, run, repair, "workflow")
	})
}

// StepPath names the step of a run that a request repairs.
type StepPath struct {
	RunPath
	Once
	// The step.
	NodeID string `json:"node_id"`
}

// Check refuses a request that names no step.
func (in *StepPath) Check() error {
	if in.NodeID == "" {
		return Refuse("node_id", "node_id must name the step; GET /api/runs/ID lists them")
	}
	return nil
}

// StepRepair is a request to repair a step.
type StepRepair struct {
	StepPath
	// Whether the run resumes at once.
	Resume *bool `json:"resume,omitempty" default:"true"`
}

// StepSet is a request to set a step's outputs.
type StepSet struct {
	StepPath
	// Its outputs by name; `text` for a step that declares none.
	Outputs json.RawMessage `json:"outputs" type:"object"`
	// Whether the run resumes at once.
	Resume *bool `json:"resume,omitempty" default:"true"`
}

// Check refuses outputs that are no object.
func (in *StepSet) Check() error {
	if rawjson.IsNull(in.Outputs) || !isObject(in.Outputs) {
		return Refuse("outputs", "outputs must be an object with the step's outputs, whose fields come once")
	}
	return nil
}

// SetStep finishes a step with outputs that the request gives.
//
// The run must have failed or been stopped. `outputs` must be as the step declares them; its check is not evaluated. The
// run continues after the step, and finished steps that depend on it are executed again.
func (s *Service) SetStep(ctx context.Context, scope continuo.Scope, in StepSet) (*engine.RunStatus, error) {
	repair := engine.RunRepair{Kind: engine.RepairSet, Outputs: in.Outputs}
	return s.repairStep(ctx, scope, StepRepair{in.StepPath, in.Resume}, repair, "outputs")
}

// RetryStep repeats a step.
//
// The run must have failed or been stopped. A step that failed or has finished begins again, in a new visit, and the steps
// that depend on it are executed again after it.
func (s *Service) RetryStep(ctx context.Context, scope continuo.Scope, in StepRepair) (*engine.RunStatus, error) {
	return s.repairStep(ctx, scope, in, engine.RunRepair{Kind: engine.RepairRetry}, "node_id")
}

// SkipStep skips a step.
//
// The run must have failed or been stopped. It continues after the step, which has no outputs; where a condition, a check,
// an input or an output of the run needs them, the request is refused.
func (s *Service) SkipStep(ctx context.Context, scope continuo.Scope, in StepRepair) (*engine.RunStatus, error) {
	return s.repairStep(ctx, scope, in, engine.RunRepair{Kind: engine.RepairSkip}, "node_id")
}

// repairStep repairs a step; field is what an invalid repair is about.
func (s *Service) repairStep(ctx context.Context, scope continuo.Scope, in StepRepair, repair engine.RunRepair, field string) (*engine.RunStatus, error) {
	repair.Node, repair.Hold, repair.Key = in.NodeID, in.Resume != nil && !*in.Resume, string(in.Key)
	return s.changeRun(ctx, scope, in.RunPath, func(run continuo.Run) (*engine.RunStatus, error) {
		return s.repairRun(ctx, scope, run, repair, field)
	})
}

// repairRun repairs a run on behalf of the caller.
func (s *Service) repairRun(ctx context.Context, scope continuo.Scope, run continuo.Run, repair engine.RunRepair, field string) (*engine.RunStatus, error) {
	repair.By = callerName(ctx, scope)
	status, err := s.Engine.Runs.Repair(ctx, run, repair, true)
	switch problems, _ := splitProblems(err); {
	case len(problems) > 0:
		return nil, err
	case errors.Is(err, continuo.ErrNotFound) && repair.Node != "":
		err = At("node_id", err)
	case errors.Is(err, continuo.ErrInvalid):
		err = At(field, err)
	}
	return status, err
}

// callerName identifies a caller in the log: a user, a key, or any client that reaches the server.
func callerName(ctx context.Context, scope continuo.Scope) string {
	if scope.UserID != "" {
		return "user " + scope.UserID
	}
	if payer, _ := continuo.PayerOf(ctx); payer.KeyID != "" {
		return "key " + payer.KeyID
	}
	return "api"
}
