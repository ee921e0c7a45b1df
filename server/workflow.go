package server

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/workflow"
)

// workflowPattern is the pattern of the ids of workflows. An id that does not match is never looked up.
var workflowPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// splitProblems splits joined errors into the problems of files and the rest.
func splitProblems(err error) (found []*workflow.Problems, rest error) {
	if problems, ok := err.(*workflow.Problems); ok {
		return []*workflow.Problems{problems}, nil
	}
	switch wrapped := err.(type) {
	case interface{ Unwrap() []error }:
		for _, one := range wrapped.Unwrap() {
			problems, other := splitProblems(one)
			found, rest = append(found, problems...), errors.Join(rest, other)
		}
		return found, rest
	case interface{ Unwrap() error }:
		if found, rest = splitProblems(wrapped.Unwrap()); len(found) > 0 {
			return found, rest
		}
	}
	return nil, err
}

func (s *server) listWorkflows(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	found, err := s.engine.Runs.Workflows()
	rows := []any{}
	for _, one := range found {
		rows = append(rows, one.Summary())
	}
	return listFiles(w, rows, err)
}

// listFiles answers with the rows of valid files, followed by the invalid ones, which the joined error names.
func listFiles(w http.ResponseWriter, rows []any, err error) error {
	broken, err := splitProblems(err)
	if err != nil {
		return err
	}
	for _, problems := range broken {
		if shown := api.ShownProblems(problems); len(shown) > 0 {
			rows = append(rows, api.BrokenFile{File: shown[0].File, Problems: shown})
		}
	}
	return writeJSON(w, http.StatusOK, list[any]{Data: rows})
}

// showWorkflowSchema shows the JSON Schema that editors check workflows' files against. A workflow whose id is schema
// can be run, but not shown.
func (s *server) showWorkflowSchema(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	return writeBody(w, http.StatusOK, "application/schema+json", workflow.Schema())
}

func (s *server) getWorkflow(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	found, err := s.workflow(r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, found.Shown())
}

// workflow finds a workflow, or suggests the nearest id.
func (s *server) workflow(id string) (*workflow.Workflow, error) {
	if !workflowPattern.MatchString(id) {
		return nil, s.noWorkflow(id)
	}
	found, err := s.engine.Runs.Workflow(id)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, s.noWorkflow(id)
	}
	return found, err
}

// noWorkflow is the problem of an id that no workflow has.
func (s *server) noWorkflow(id string) error {
	known, _ := s.engine.Runs.Workflows()
	names := make([]string, len(known))
	for i := range known {
		names[i] = known[i].ID
	}
	return fmt.Errorf("workflow %q: %w%s", bounded(id), continuo.ErrNotFound, suggestion(id, names))
}
