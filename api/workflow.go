package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/workflow"
)

func (s *Service) workflowOperations() []Operation {
	return []Operation{
		define(Operation{
			ID: "listWorkflows", Method: "GET", Path: "/api/workflows", Tag: "runs", Summary: "list the workflows",
			Answers: answers(ok("All workflows.")),
		}, s.ListWorkflows),
		define(Operation{
			ID: "showWorkflowSchema", Method: "GET", Path: "/api/workflows/schema", Tag: "runs", Summary: "show the JSON Schema of workflows' files",
			Public: true, Answers: answers(ok("The schema (JSON Schema, draft 2020-12).").as(jsonSchema)),
		}, s.ShowWorkflowSchema),
		define(Operation{
			ID: "getWorkflow", Method: "GET", Path: "/api/workflows/{id}", Tag: "runs", Summary: "show a workflow",
			Answers: answers(
				ok("The workflow, parsed and as text."),
				failing(404, "There is no such workflow (`not_found`); the message suggests the nearest id."),
				shared(http.StatusUnprocessableEntity, "WorkflowInvalid"),
			),
		}, s.GetWorkflow),
	}
}

// jsonSchema is the media type of a schema of files.
var jsonSchema = Media{Type: "application/schema+json", Schema: reflect.TypeFor[map[string]any]()}

// WorkflowRow is a row of the list of workflows: a workflow, or a file that is invalid.
type WorkflowRow struct {
	*workflow.Summary
	*BrokenFile
}

// ListWorkflows lists the workflows.
//
// The valid ones by id, and then the invalid files, each with all of its problems. They are the same for all projects. The
// list has one page.
func (s *Service) ListWorkflows(context.Context, continuo.Scope, Nothing) (All[WorkflowRow], error) {
	return WorkflowList(s.Engine.Runs.Workflows())
}

// WorkflowList makes the list of workflows from the valid ones and the problems of the invalid files. It returns other
// errors.
func WorkflowList(found []*workflow.Workflow, problems error) (list All[WorkflowRow], err error) {
	broken, err := brokenFiles(problems)
	list.Data = []WorkflowRow{}
	for _, one := range found {
		summary := one.Summary()
		list.Data = append(list.Data, WorkflowRow{Summary: &summary})
	}
	for i := range broken {
		list.Data = append(list.Data, WorkflowRow{BrokenFile: &broken[i]})
	}
	return list, err
}

// brokenFiles splits the error of a list of files into rows of invalid files and the rest.
func brokenFiles(err error) (rows []BrokenFile, rest error) {
	found, rest := splitProblems(err)
	for _, problems := range found {
		if shown := ShownProblems(problems); len(shown) > 0 {
			rows = append(rows, BrokenFile{File: shown[0].File, Problems: shown})
		}
	}
	return rows, rest
}

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

// ShowWorkflowSchema shows the JSON Schema of workflows' files.
//
// For editors, which use it to check and complete a file. A workflow whose id is `schema` can be run, but `GET
// /api/workflows/{id}` does not show it.
func (s *Service) ShowWorkflowSchema(context.Context, continuo.Scope, Nothing) ([]byte, error) {
	return workflow.Schema(), nil
}

// WorkflowPath names a workflow.
type WorkflowPath struct {
	// A workflow's id.
	ID string `path:"id"`
}

// GetWorkflow shows a workflow.
func (s *Service) GetWorkflow(_ context.Context, _ continuo.Scope, in WorkflowPath) (shown workflow.Shown, err error) {
	found, err := s.workflow(in.ID)
	if err != nil {
		return shown, err
	}
	return found.Shown(), nil
}

// workflow finds a workflow, or suggests the nearest id.
func (s *Service) workflow(id string) (*workflow.Workflow, error) {
	if !engine.DefinitionIDPattern.MatchString(id) { // it is not looked up
		return nil, s.noWorkflow(id)
	}
	found, err := s.Engine.Runs.Workflow(id)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, s.noWorkflow(id)
	}
	return found, err
}

// noWorkflow is the error about an id that no workflow has.
func (s *Service) noWorkflow(id string) error {
	known, _ := s.Engine.Runs.Workflows()
	names := make([]string, len(known))
	for i := range known {
		names[i] = known[i].ID
	}
	return fmt.Errorf("workflow %q: %w%s", Bounded(id), continuo.ErrNotFound, suggestion(id, names))
}
