// Package workflow defines workflows and decides how their runs proceed. A [Workflow] is read from a YAML file and
// checked as a whole ([Parse]); a [State] is computed from the events of a run, and says which steps are due; the
// package also makes the texts with which a step's requests begin ([State.Texts]). It does no I/O: package engine
// executes the steps, and stores everything in the log.
//
// A run follows the edges. A node begins when all edges that lead to it are settled, taken or not, and one of them
// was taken; where none was, the node is skipped, and so are the edges from it. So branches join without an explicit
// declaration. An edge back, with a limit of its own, repeats the nodes of its loop; only the node that the edge
// back leaves may have edges out of the loop.
//
// Pitfalls: the text of a workflow is stored with each of its runs, which keep using it when the file has changed.
// Branches run in parallel: [State.Steps] says which nodes may run at once, and from where each of them continues.
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
	// Outputs are the run's own, computed when it ends. Default: the outputs of the finished nodes without outgoing
	// edges, each under its node's id.
	Outputs []Binding
	// Text is the file as it was read.
	Text []byte
}

// Hash is the SHA-256 of the text, in hex.
func (w *Workflow) Hash() string {
	sum := sha256.Sum256(w.Text)
	return hex.EncodeToString(sum[:])
}

// Node is a step of a workflow: one that a model executes, or, with an Approval, a person's decision.
type Node struct {
	ID    string // a small letter, then small letters, digits and _
	Name  string // for people; default: the id
	Brief string // the task of the step
	// Agent executes the step; "" for none: no persona, the default model, the project's tools.
	Agent string
	// Model and View replace the agent's; "" keeps them.
	Model, View string
	// Tools narrows the tools of the project and the agent. Default: all of these.
	Tools tool.Policy
	// Inputs are shown to the step by name. Default: all inputs of the run.
	Inputs []Binding
	// Outputs are the values that the answer must end with. Default: one, text, which is the whole answer.
	Outputs []Field
	// SuccessCriteria are sentences for the agent that executes the step; Check, over the step's outputs, must hold.
	SuccessCriteria []string
	Check           *Expression
	// MaxAttempts bounds the attempts whose answer lacks outputs or fails the check; attempts that broke off do not
	// count. Default 3.
	MaxAttempts int
	// Retry bounds the automatic retries of attempts that broke off. Default: the workflow's, which has defaults.
	Retry Retry
	// Join says when a node with several edges to it begins. Default: all where independent approvals meet, else any.
	Join Join
	// Approval makes the node a person's decision, with the outputs approved (boolean) and comment (string).
	Approval *Approval
	Line     int // in the file
}

// Retry bounds the automatic retries of a step after transient failures: a broken network connection, a rate limit, a
// provider that is down. Both bounds count from the first failure since the last answer.
type Retry struct {
	For time.Duration // default 24 h
	Max int           // attempts in a row; default 200
}

// Join says when a node with several edges to it begins, once all of them are settled. Edges from skipped nodes do
// not count.
type Join string

// The joins.
const (
	JoinAll Join = "all" // when every edge was taken
	JoinAny Join = "any" // when one was taken
)

// Approval is the question to a person.
type Approval struct{ Question string }

// Field is an input or an output.
type Field struct {
	Name        string // a small letter, then small letters, digits and _
	Type        Type
	Description string
	Enum        []string // the allowed values of a string; empty for any
	// Default is the value of an input that is not given, nil for none; Optional says that the value may be missing.
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
	// When must hold for the edge to be taken; nil for always. Otherwise takes the edge when no other edge of its node,
	// including edges back, is taken.
	When      *Expression
	Otherwise bool
	// Max is how often an edge back may be taken in one passage through its loop. 0: the edge does not lead back.
	Max int
	// Continue says that the run continues along the node's other edges when the limit is reached; otherwise it fails.
	Continue bool
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

// Known lists the names that workflows may use; with a nil list no name of that kind is valid. Any accepts every
// name: the workflow of a run that has begun must remain readable after an agent was removed.
type Known struct {
	Agents, Models, Views []string
	// Tools are names of tools, or SERVER.* for all tools of a server. Nil: tools are not checked.
	Tools []string
	Any   bool
}

// Values are the values that an expression can use.
type Values struct {
	Inputs map[string]any // the run's
	// Outputs are those of the node that an edge leaves or that a check belongs to; nil elsewhere.
	Outputs map[string]any
	Nodes   map[string]map[string]any // the outputs of the newest visit of each node that has finished, by its id
	Visit   int                       // of that node; 0 elsewhere
}
