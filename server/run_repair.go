package server

import (
	"encoding/json"
	"errors"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// stepRepair is the body of the calls that repair one step of a run.
type stepRepair struct {
	NodeID string `json:"node_id"`
	// Resume says whether the run resumes at once. Default: it does.
	Resume *bool `json:"resume"`
}

// resumeRun resumes a run that failed, was stopped, or whose process is gone, with a corrected workflow if the body has
// one.
func (s *server) resumeRun(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		Workflow *string  `json:"workflow"`
		Drop     []string `json:"drop"`
	}
	return s.changeRun(w, r, &request, func(run continuo.Run) (*engine.RunStatus, error) {
		switch {
		case request.Workflow != nil:
			repair := engine.RunRepair{Kind: engine.RepairReplace, Workflow: []byte(*request.Workflow), Drop: request.Drop}
			return s.repairRun(r, run, repair, "workflow")
		case len(request.Drop) > 0:
			return nil, refuse("drop", "drop goes with workflow: it names steps that the corrected workflow does not have any more")
		}
		return s.engine.Runs.Resume(r.Context(), run, true)
	})
}

// setStep finishes a step with outputs that the body gives.
func (s *server) setStep(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		NodeID  string          `json:"node_id"`
		Resume  *bool           `json:"resume"`
		Outputs json.RawMessage `json:"outputs"`
	}
	return s.changeRun(w, r, &request, func(run continuo.Run) (*engine.RunStatus, error) {
		if rawjson.IsNull(request.Outputs) || eachMember(request.Outputs, func(string, json.RawMessage) error { return nil }) != nil {
			return nil, refuse("outputs", "outputs must be an object with the step's outputs, whose fields come once")
		}
		repair := engine.RunRepair{Kind: engine.RepairSet, Outputs: request.Outputs}
		return s.repairStep(r, run, repair, stepRepair{request.NodeID, request.Resume}, "outputs")
	})
}

// retryStep repeats a step.
func (s *server) retryStep(w http.ResponseWriter, r *http.Request) error {
	return s.changeStep(w, r, engine.RepairRetry)
}

// skipStep skips a step, so that the run continues after it.
func (s *server) skipStep(w http.ResponseWriter, r *http.Request) error {
	return s.changeStep(w, r, engine.RepairSkip)
}

func (s *server) changeStep(w http.ResponseWriter, r *http.Request, kind engine.RepairKind) error {
	var request stepRepair
	return s.changeRun(w, r, &request, func(run continuo.Run) (*engine.RunStatus, error) {
		return s.repairStep(r, run, engine.RunRepair{Kind: kind}, request, "node_id")
	})
}

// repairStep repairs the step that a body names; field is what an invalid repair is about.
func (s *server) repairStep(r *http.Request, run continuo.Run, repair engine.RunRepair, step stepRepair, field string) (*engine.RunStatus, error) {
	if step.NodeID == "" {
		return nil, refuse("node_id", "node_id must name the step; GET /api/runs/ID lists them")
	}
	repair.Node, repair.Hold = step.NodeID, step.Resume != nil && !*step.Resume
	return s.repairRun(r, run, repair, field)
}

// repairRun repairs a run on behalf of the caller.
func (s *server) repairRun(r *http.Request, run continuo.Run, repair engine.RunRepair, field string) (*engine.RunStatus, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return nil, err
	}
	repair.Key, repair.By = key, callerName(r)
	status, err := s.engine.Runs.Repair(r.Context(), run, repair, true)
	switch problems, _ := splitProblems(err); {
	case len(problems) > 0:
		return nil, err
	case errors.Is(err, continuo.ErrNotFound) && repair.Node != "":
		err = at("node_id", err)
	case errors.Is(err, continuo.ErrInvalid):
		err = at(field, err)
	}
	return status, err
}

// callerName identifies the caller of a request in the log: a user, a key, or any client that reaches the server.
func callerName(r *http.Request) string {
	who := r.Context().Value(callerKey{}).(caller)
	switch {
	case who.scope.UserID != "":
		return "user " + who.scope.UserID
	case who.keyID != "":
		return "key " + who.keyID
	}
	return "api"
}
