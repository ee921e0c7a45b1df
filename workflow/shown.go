package workflow

import (
	"fmt"

	"github.com/continuo-log/continuo/tool"
)

// Summary is a row of a list of workflows.
type Summary struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"` // for people
	Description string       `json:"description,omitempty"`
	Inputs      []ShownField `json:"inputs"`
	Nodes       int          `json:"nodes" minimum:"1"` // how many
}

// Summary is the workflow's row in a list.
func (w *Workflow) Summary() Summary {
	return Summary{w.ID, w.Name, w.Description, shownFields(w.Inputs), len(w.Nodes)}
}

// Shown is a workflow as the API and the command line show it in JSON. Nodes and edges are in the order of the file.
type Shown struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"` // for people
	Description string       `json:"description,omitempty"`
	Inputs      []ShownField `json:"inputs"`
	Nodes       []ShownNode  `json:"nodes"`
	Edges       []ShownEdge  `json:"edges"`
	// Outputs are the run's own; absent for those of the last nodes.
	Outputs []ShownBinding `json:"outputs,omitempty"`
	// SHA256 is the hash of the text, in hex. The event run_began of a run names the text that it executes.
	SHA256 string `json:"sha256"`
	Text   string `json:"text"` // the file (YAML)
}

// ShownField is an input or an output.
type ShownField struct {
	Name        string   `json:"name"`
	Type        Type     `json:"type"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`     // the values that a string may have; absent for any
	Default     any      `json:"default,omitempty"`  // the value of an input that is not given; absent for none
	Optional    bool     `json:"optional,omitempty"` // it need not be given
}

// ShownBinding is a value with a name.
type ShownBinding struct {
	Name  string `json:"name"`
	Value string `json:"value"` // an expression, as in the file
}

// ShownNode is a step that a model executes, or, with an approval, a person's decision.
type ShownNode struct {
	ID              string         `json:"id"`
	Name            string         `json:"name"`            // for people
	Brief           string         `json:"brief,omitempty"` // the task
	Agent           string         `json:"agent,omitempty"`
	Model           string         `json:"model,omitempty"`
	View            string         `json:"view,omitempty"`
	Tools           *ShownPolicy   `json:"tools,omitempty"`
	Inputs          []ShownBinding `json:"inputs,omitempty"`
	Outputs         []ShownField   `json:"outputs,omitempty"`
	SuccessCriteria []string       `json:"success_criteria,omitempty"`
	Check           string         `json:"check,omitempty"`        // an expression over the outputs that must be true
	MaxAttempts     int            `json:"max_attempts,omitempty"` // how often an invalid answer is requested again
	Retry           *ShownRetry    `json:"retry,omitempty"`        // of steps
	// Join says, where several edges lead to the node, whether it begins when all of them were taken or one. Edges of
	// skipped nodes do not count.
	Join     Join           `json:"join,omitempty"`
	Approval *ShownApproval `json:"approval,omitempty"`
}

// ShownRetry bounds the time and the number of automatic retries of a step.
type ShownRetry struct {
	For string `json:"for"` // a duration, such as 24h0m0s
	Max int    `json:"max" minimum:"1"`
}

// ShownApproval is the question to a person.
type ShownApproval struct {
	Question string `json:"question"`
}

// ShownPolicy are the patterns of a step's tools, within what the project and the agent allow.
type ShownPolicy struct {
	Allow     []string      `json:"allow,omitempty"`
	Ask       []string      `json:"ask,omitempty"`
	Deny      []string      `json:"deny,omitempty"`
	Otherwise tool.Decision `json:"otherwise" enum:"allow,ask,deny,"` // for tools that match no pattern
}

// ShownEdge is an edge. Max, AtLimit and Body are those of an edge back, which closes a loop.
type ShownEdge struct {
	From      string   `json:"from"`
	To        string   `json:"to"`
	When      string   `json:"when,omitempty"`                          // an expression that must be true for the edge to be taken
	Otherwise bool     `json:"otherwise,omitempty"`                     // it is taken when no other edge of its node is
	Max       int      `json:"max,omitempty" minimum:"1"`               // how often it may be taken in one passage through the loop
	AtLimit   string   `json:"at_limit,omitempty" enum:"fail,continue"` // what happens when Max is reached
	Body      []string `json:"body,omitempty"`                          // the nodes of the loop
}

// Shown is the workflow for programs to read.
func (w *Workflow) Shown() Shown {
	shown := Shown{
		ID: w.ID, Name: w.Name, Description: w.Description, Inputs: shownFields(w.Inputs),
		Nodes: []ShownNode{}, Edges: []ShownEdge{}, Outputs: shownBindings(w.Outputs), SHA256: w.Hash(), Text: string(w.Text),
	}
	for i := range w.Nodes {
		node := w.Nodes[i].shown()
		if w.joins(node.ID) {
			node.Join = w.Nodes[i].Join
		}
		shown.Nodes = append(shown.Nodes, node)
	}
	for i := range w.Edges {
		shown.Edges = append(shown.Edges, w.Edges[i].shown())
	}
	return shown
}

// Joins describes, for each node with several incoming forward edges, when it begins.
func (w *Workflow) Joins() []string {
	var lines []string
	for i := range w.Nodes {
		node := &w.Nodes[i]
		if !w.joins(node.ID) {
			continue
		}
		when := "one of the edges to it was taken (join: any)"
		if node.Join == JoinAll {
			when = "all edges to it were taken, but for those of skipped steps (join: all)"
		}
		lines = append(lines, fmt.Sprintf("%s begins when %s", node.ID, when))
	}
	return lines
}

// joins reports whether several forward edges lead to a node.
func (w *Workflow) joins(id string) bool {
	edges := 0
	for i := range w.Edges {
		if w.Edges[i].To == id && w.Edges[i].Max == 0 {
			edges++
		}
	}
	return edges > 1
}

func (n *Node) shown() ShownNode {
	shown := ShownNode{
		ID: n.ID, Name: n.Name, Brief: n.Brief, Agent: n.Agent, Model: n.Model, View: n.View,
		Inputs: shownBindings(n.Inputs), Outputs: shownFields(n.Outputs),
		SuccessCriteria: n.SuccessCriteria, Check: n.Check.text(), MaxAttempts: n.MaxAttempts,
	}
	if n.Approval != nil {
		shown.Approval = &ShownApproval{n.Approval.Question}
		return shown
	}
	shown.Retry = &ShownRetry{n.Retry.For.String(), n.Retry.Max}
	shown.Tools = &ShownPolicy{n.Tools.Allow, n.Tools.Ask, n.Tools.Deny, n.Tools.Otherwise}
	return shown
}

func (e *Edge) shown() ShownEdge {
	shown := ShownEdge{From: e.From, To: e.To, When: e.When.text(), Otherwise: e.Otherwise, Max: e.Max, Body: e.Body}
	switch {
	case e.Max > 0 && e.Continue:
		shown.AtLimit = "continue"
	case e.Max > 0:
		shown.AtLimit = "fail"
	}
	return shown
}

func shownFields(fields []Field) []ShownField {
	shown := []ShownField{}
	for _, f := range fields {
		shown = append(shown, ShownField(f))
	}
	return shown
}

func shownBindings(bindings []Binding) []ShownBinding {
	var shown []ShownBinding
	for _, b := range bindings {
		shown = append(shown, ShownBinding{b.Name, b.Value.text()})
	}
	return shown
}

// text is the source text of an expression, "" for none.
func (e *Expression) text() string {
	if e == nil {
		return ""
	}
	return e.Text
}
