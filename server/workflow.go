package server

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/workflow"
)

// workflowPattern is what the ids of workflows look like. What does not match is never looked up.
var workflowPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// workflowSummary is a row of the list of workflows.
type workflowSummary struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Inputs      []shownField `json:"inputs"`
	Nodes       int          `json:"nodes"` // how many
}

// brokenWorkflow is a row for a file that is not right.
type brokenWorkflow struct {
	File     string         `json:"file"`
	Problems []shownProblem `json:"problems"`
}

// shownProblem is one thing that is wrong with a workflow's file. The folder is nobody's business.
type shownProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func shownProblems(problems *workflow.Problems) []shownProblem {
	shown := []shownProblem{}
	for _, p := range problems.List {
		shown = append(shown, shownProblem{filepath.Base(p.File), p.Line, p.Column, p.Message})
	}
	return shown
}

// workflowInvalid is the problem of a workflow whose file is not right.
func workflowInvalid(problems *workflow.Problems) *problem {
	shown := shownProblems(problems)
	p := &problem{
		status: http.StatusUnprocessableEntity, kind: invalidRequest, code: "workflow_invalid",
		message: "the workflow's file is not right", details: members("problems", shown),
	}
	if len(shown) > 0 {
		first := shown[0]
		p.message += fmt.Sprintf(": %s:%d:%d: %s", first.File, first.Line, first.Column, first.Message)
	}
	if more := len(shown) - 1; more > 0 {
		p.message += fmt.Sprintf("; and %d more", more)
	}
	return p
}

// splitProblems takes joined errors apart: the problems of workflows, and what else there is.
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
	found, err := s.engine.Workflows()
	broken, err := splitProblems(err)
	if err != nil {
		return err
	}
	rows := []any{}
	for _, one := range found {
		rows = append(rows, workflowSummary{one.ID, one.Name, one.Description, shownFields(one.Inputs), len(one.Nodes)})
	}
	for _, problems := range broken {
		if shown := shownProblems(problems); len(shown) > 0 {
			rows = append(rows, brokenWorkflow{shown[0].File, shown})
		}
	}
	return writeJSON(w, http.StatusOK, list[any]{Data: rows})
}

// showWorkflowSchema shows what editors check workflows' files against. A workflow whose id is schema can be run,
// but is not shown.
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
	return writeJSON(w, http.StatusOK, showWorkflow(found))
}

// workflow finds a workflow, or says which was probably meant.
func (s *server) workflow(id string) (*workflow.Workflow, error) {
	if !workflowPattern.MatchString(id) {
		return nil, s.noWorkflow(id)
	}
	found, err := s.engine.Workflow(id)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, s.noWorkflow(id)
	}
	return found, err
}

// noWorkflow is the problem of an id that no workflow has.
func (s *server) noWorkflow(id string) error {
	known, _ := s.engine.Workflows()
	names := make([]string, len(known))
	for i := range known {
		names[i] = known[i].ID
	}
	return fmt.Errorf("workflow %q: %w%s", bounded(id), continuo.ErrNotFound, suggestion(id, names))
}

// shownWorkflow is a workflow as clients see it.
type shownWorkflow struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Inputs      []shownField   `json:"inputs"`
	Nodes       []shownNode    `json:"nodes"`
	Edges       []shownEdge    `json:"edges"`
	Outputs     []shownBinding `json:"outputs,omitempty"`
	SHA256      string         `json:"sha256"`
	Text        string         `json:"text"`
}

type shownField struct {
	Name        string        `json:"name"`
	Type        workflow.Type `json:"type"`
	Description string        `json:"description,omitempty"`
	Enum        []string      `json:"enum,omitempty"`
	Default     any           `json:"default,omitempty"` // nil for none; a default of false or 0 is shown
	Optional    bool          `json:"optional,omitempty"`
}

// shownBinding is a name and the text of the expression that is its value.
type shownBinding struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type shownNode struct {
	ID              string         `json:"id"`
	Name            string         `json:"name"`
	Brief           string         `json:"brief,omitempty"`
	Agent           string         `json:"agent,omitempty"`
	Model           string         `json:"model,omitempty"`
	View            string         `json:"view,omitempty"`
	Tools           *shownPolicy   `json:"tools,omitempty"`
	Inputs          []shownBinding `json:"inputs,omitempty"`
	Outputs         []shownField   `json:"outputs,omitempty"`
	SuccessCriteria []string       `json:"success_criteria,omitempty"`
	Check           string         `json:"check,omitempty"`
	MaxAttempts     int            `json:"max_attempts,omitempty"`
	Approval        *shownApproval `json:"approval,omitempty"`
}

type shownApproval struct {
	Question string `json:"question"`
}

// shownPolicy are the patterns of a node's tools.
type shownPolicy struct {
	Allow     []string      `json:"allow,omitempty"`
	Ask       []string      `json:"ask,omitempty"`
	Deny      []string      `json:"deny,omitempty"`
	Otherwise tool.Decision `json:"otherwise"`
}

type shownEdge struct {
	From      string   `json:"from"`
	To        string   `json:"to"`
	When      string   `json:"when,omitempty"`
	Otherwise bool     `json:"otherwise,omitempty"`
	Max       int      `json:"max,omitempty"`      // of an edge back
	AtLimit   string   `json:"at_limit,omitempty"` // of an edge back: fail or go_on
	Body      []string `json:"body,omitempty"`     // of an edge back: the nodes of its loop
}

func showWorkflow(w *workflow.Workflow) shownWorkflow {
	shown := shownWorkflow{
		ID: w.ID, Name: w.Name, Description: w.Description, Inputs: shownFields(w.Inputs),
		Nodes: []shownNode{}, Edges: []shownEdge{}, Outputs: shownBindings(w.Outputs),
		SHA256: w.Hash(), Text: strings.ToValidUTF8(string(w.Text), "\uFFFD"),
	}
	for i := range w.Nodes {
		shown.Nodes = append(shown.Nodes, showNode(&w.Nodes[i]))
	}
	for i := range w.Edges {
		shown.Edges = append(shown.Edges, showEdge(&w.Edges[i]))
	}
	return shown
}

func showNode(n *workflow.Node) shownNode {
	shown := shownNode{
		ID: n.ID, Name: n.Name, Brief: n.Brief, Agent: n.Agent, Model: n.Model, View: n.View,
		Inputs: shownBindings(n.Inputs), Outputs: shownFields(n.Outputs),
		SuccessCriteria: n.SuccessCriteria, Check: expressionText(n.Check), MaxAttempts: n.MaxAttempts,
	}
	if n.Approval != nil {
		shown.Approval = &shownApproval{n.Approval.Question}
		return shown
	}
	shown.Tools = &shownPolicy{n.Tools.Allow, n.Tools.Ask, n.Tools.Deny, n.Tools.Otherwise}
	return shown
}

func showEdge(e *workflow.Edge) shownEdge {
	shown := shownEdge{From: e.From, To: e.To, When: expressionText(e.When), Otherwise: e.Otherwise, Max: e.Max, Body: e.Body}
	switch {
	case e.Max > 0 && e.GoOn:
		shown.AtLimit = "go_on"
	case e.Max > 0:
		shown.AtLimit = "fail"
	}
	return shown
}

func shownFields(fields []workflow.Field) []shownField {
	shown := []shownField{}
	for _, f := range fields {
		shown = append(shown, shownField(f))
	}
	return shown
}

func shownBindings(bindings []workflow.Binding) []shownBinding {
	var shown []shownBinding
	for _, b := range bindings {
		shown = append(shown, shownBinding{b.Name, expressionText(b.Value)})
	}
	return shown
}

// expressionText is an expression as it stands in the file, "" for none.
func expressionText(e *workflow.Expression) string {
	if e == nil {
		return ""
	}
	return e.Text
}
