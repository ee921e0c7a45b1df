// Package workflow knows workflows and decides how their runs go on. A [Workflow] is read from a YAML file and
// checked as a whole ([Parse]); a [State] is what the events of a run come to, and says what is to be done
// next; the texts that a step's requests begin with are made here too ([Workflow.Texts]). Nothing is carried out:
// package engine does that, and keeps nothing but the log.
//
// A run goes along the edges. A node begins when all edges that lead to it are settled, taken or not, and one
// of them was taken; where none was, the node is skipped, and so are the edges from it. So branches
// come together again without saying so. An edge back, with a limit of its own, begins the nodes of its loop
// anew; only the node that it leaves may have edges out of the loop.
//
// Pitfalls: the text of a workflow is kept with each of its runs, which go on by it when the file has changed.
// Branches run side by side: [State.Steps] says which nodes may run at once, and where each of them goes on from.
package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/continuo-log/continuo/tool"
)

// Workflow is a checked workflow. It is read-only, and safe for concurrent use.
type Workflow struct {
	ID          string // a small letter, then small letters, digits, _ and -
	Name        string // for people; default: the id
	Description string
	Inputs      []Field
	Nodes       []Node // in the order of the file
	Edges       []Edge // likewise
	// Outputs are the run's own, made when it ends. Default: the outputs of the finished nodes that no edge
	// leaves, each under its node's id.
	Outputs []Binding
	// Text is the file as it was read.
	Text []byte
}

// Hash is the SHA-256 of the text, in hex.
func (w *Workflow) Hash() string {
	sum := sha256.Sum256(w.Text)
	return hex.EncodeToString(sum[:])
}

// Node is a step of a workflow: one that a model carries out, or, with an Approval, a person's decision.
type Node struct {
	ID    string // a small letter, then small letters, digits and _
	Name  string // for people; default: the id
	Brief string // what is to be done
	// Agent carries the step out; "" for none: no persona, the default model, the project's tools.
	Agent string
	// Model and View replace the agent's; "" leaves them.
	Model, View string
	// Tools narrows what the project and the agent allow. The policy of a node that says nothing allows all.
	Tools tool.Policy
	// Inputs are shown to the step by name. Default: all inputs of the run.
	Inputs []Binding
	// Outputs are what the answer must end with. Default: one, text, which is the whole answer.
	Outputs []Field
	// SuccessCriteria are sentences for whoever carries the step out; Check, over the step's outputs, must hold.
	SuccessCriteria []string
	Check           *Expression
	// MaxAttempts bounds how often an answer that lacks outputs or fails the check is asked for again; those
	// that broke off do not count. Default 3.
	MaxAttempts int
	// Retry bounds for how long attempts that broke off are taken up again. Default: the workflow's, which has defaults.
	Retry Retry
	// Join says when a node with several edges to it begins. Default: all where independent approvals meet, else any.
	Join Join
	// Approval makes the node a person's decision, with the outputs approved (boolean) and comment (string).
	Approval *Approval
	Line     int // in the file
}

// Retry bounds for how long a step is taken up again, by itself, after failures that pass: a network that broke off, a
// rate limit, a provider that is down. Both count from the first failure since an answer came.
type Retry struct {
	For time.Duration // default 24 h
	Max int           // attempts in a row; default 200
}

// Join says when a node with several edges to it begins, once all of them are settled. Edges from nodes that were
// skipped do not count.
type Join string

// The joins.
const (
	JoinAll Join = "all" // when every edge was taken
	JoinAny Join = "any" // when one was taken
)

// Approval is what a person is asked.
type Approval struct{ Question string }

// Field is an input or an output.
type Field struct {
	Name        string // a small letter, then small letters, digits and _
	Type        Type
	Description string
	Enum        []string // of a string: what it may be; empty for anything
	// Default is the value of an input that is not given, nil for none; Optional says that there need be none.
	Default  any
	Optional bool
}

// Type is a type of values, named as JSON Schema names it.
type Type string

// The types.
const (
	String  Type = "string"
	Number  Type = "number"
	Integer Type = "integer"
	Boolean Type = "boolean"
	Array   Type = "array"
	Object  Type = "object"
)

// Binding is a value with a name.
type Binding struct {
	Name  string
	Value *Expression
}

// Edge leads from a node to another, or back to it or an earlier one.
type Edge struct {
	From, To string
	// When must hold for the edge to be taken; nil for always. Otherwise takes the edge when no other edge of
	// its node, the edges back included, is taken.
	When      *Expression
	Otherwise bool
	// Max is of an edge back: how often it may be taken in one passage through its loop. 0: the edge does not lead back.
	Max int
	// GoOn says that the run goes on along the node's other edges when the limit is reached; otherwise it fails.
	GoOn bool
	// Body are the nodes of an edge's loop in the order of the file; empty for an edge that does not lead back.
	Body []string
	Line int // in the file
}

// Node finds a node; nil when there is none.
func (w *Workflow) Node(id string) *Node {
	for i := range w.Nodes {
		if w.Nodes[i].ID == id {
			return &w.Nodes[i]
		}
	}
	return nil
}

// Known is what workflows may name; a nil list knows nothing of that kind. Any knows every name: the workflow of a
// run that has begun is read even where an agent is gone since.
type Known struct {
	Agents, Models, Views []string
	// Tools are names, and SERVER.* for whatever a server has. Nil: they are not checked.
	Tools []string
	Any   bool
}

// Values are what an expression can speak of.
type Values struct {
	Inputs map[string]any // the run's
	// Outputs are those of the node that an edge leaves or that a check is of; nil elsewhere.
	Outputs map[string]any
	Nodes   map[string]map[string]any // the outputs of the newest visit of each node that has finished, by its id
	Visit   int                       // of that node; 0 elsewhere
}
