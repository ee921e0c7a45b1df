package workflow

import (
	"slices"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// Parse reads a workflow and checks it as a whole. File is its name in error messages, and the default for the
// workflow's id. It fails with a *Problems that lists all errors, each with its line and the remedy.
func Parse(file string, text []byte, known Known) (*Workflow, error) {
	r := &reader{Reader: yamlform.Reader{File: file, Any: known.Any}, known: known, workflow: &Workflow{Text: slices.Clone(text)}}
	if root := r.Root(text, kind); root != nil {
		r.readWorkflow(root)
		r.checkGraph()
		r.compileExpressions()
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return r.workflow, nil
}

var kind = yamlform.Form{
	One: "a workflow", Many: "workflows", Parts: "nodes, and edges between them", Keys: "nodes and edges",
	IfLong: "long texts belong into files that a step reads",
}

type (
	// Problems are the errors in a workflow, in the order of the file, at most 20. They are continuo.ErrInvalid.
	Problems = yamlform.Problems
	// Problem is one error, with its remedy.
	Problem = yamlform.Problem
)

// position is a position in the file, or in an expression.
type position = yamltree.Position

// reader makes a workflow from a file's values and collects their errors.
type reader struct {
	yamlform.Reader
	known    Known
	workflow *Workflow

	drafts  []draftNode // in the order of workflow.Nodes
	edges   []draftEdge
	inputs  fieldList
	retry   Retry // for steps without one
	pending []pendingExpression
	graph   graph
}
