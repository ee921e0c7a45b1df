package workflow

import (
	"slices"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// Parse reads a workflow and checks it as a whole. File names it in complaints, and gives the id of a workflow
// that names none. It fails with a *Problems that lists everything that is wrong, each with its line and with
// what to do.
func Parse(file string, text []byte, known Known) (*Workflow, error) {
	r := &reader{Reader: yamlform.Reader{File: file, Any: known.Any}, known: known, workflow: &Workflow{Text: slices.Clone(text)}}
	if root := r.Root(text, form); root != nil {
		r.readWorkflow(root)
		r.checkGraph()
		r.compileExpressions()
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return r.workflow, nil
}

var form = yamlform.Form{
	One: "a workflow", Many: "workflows", Parts: "nodes, and edges between them", Keys: "nodes and edges",
	IfLong: "long texts belong into files that a step reads",
}

type (
	// Problems are what is wrong with a workflow, in the order of the file, at most 20. They are continuo.ErrInvalid.
	Problems = yamlform.Problems
	// Problem is one thing that is wrong, and what to do about it.
	Problem = yamlform.Problem
)

// place is where something stands in the file, or in an expression.
type place = yamltree.Place

// reader makes a workflow of a file's values and gathers what is wrong with them.
type reader struct {
	yamlform.Reader
	known    Known
	workflow *Workflow

	drafts  []draftNode // beside workflow.Nodes
	edges   []draftEdge
	inputs  fieldList
	retry   Retry // of steps that say nothing of their own
	pending []pendingExpression
	graph   graph
}
