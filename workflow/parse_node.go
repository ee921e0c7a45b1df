package workflow

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
	"github.com/continuo-log/continuo/tool"
)

const defaultMaxAttempts = 3

// draftNode is the data of a node's checks.
type draftNode struct {
	at      position // of its id
	outputs fieldList
}

func (r *reader) readNodes(nodes yamlform.Several) {
	if v := nodes.Node; v.Kind == yamltree.Mapping && len(v.Fields) == 0 {
		r.Complain(v.At, "there are no nodes; write a step, such as draft: {brief: Write a draft.}")
	}
	r.Names(nodes, "nodes", func(key, value *yamltree.Node) {
		if r.Name(key, "a node") {
			node, draft := r.readNode(key, value)
			r.workflow.Nodes, r.drafts = append(r.workflow.Nodes, node), append(r.drafts, draft)
		}
	})
}

// nodeFile is a step or an approval.
type nodeFile struct {
	Name            yamlform.Value[string]   `key:"name" form:"line" help:"What people call it. Default: the id."`
	Brief           *yamltree.Node           `key:"brief" only:"step" required:"true" help:"What is to be done, as text for the agent that executes it."`
	Approval        yamlform.Value[string]   `key:"approval" only:"approval" required:"true" help:"The question that a person is asked; the run waits for the answer."`
	Agent           *yamltree.Node           `key:"agent" only:"step" help:"The agent of the settings that executes it. Default: none, with the default model."`
	Model           *yamltree.Node           `key:"model" only:"step" help:"A model of the settings, in place of the agent's."`
	View            *yamltree.Node           `key:"view" only:"step" help:"A view, in place of the agent's."`
	Tools           *yamltree.Node           `key:"tools" only:"step" form:"patterns|policy" help:"Which tools the step may use: a list of the only ones, or a policy. It narrows what the project and the agent allow. Default: all of those."`
	Inputs          yamlform.Several         `key:"inputs" each:"expression" max:"100" help:"What the step, or the person, is shown: names with expressions. Default: all inputs of the run for a step."`
	Outputs         yamlform.Several         `key:"outputs" only:"step" each:"type|output" max:"100" help:"What the answer must end with, by name. Default: text, which is the whole answer."`
	SuccessCriteria yamlform.Value[[]string] `key:"success_criteria" only:"step" help:"Sentences that say when the step is done well; the model reads them."`
	Check           *yamltree.Node           `key:"check" only:"step" form:"expression" help:"What must hold of the outputs; otherwise the answer is asked for again."`
	MaxAttempts     yamlform.Value[int]      `key:"max_attempts" only:"step" min:"1" max:"100" help:"How often an answer is asked for before the run fails. Default: 3."`
	Retry           *yamltree.Node           `key:"retry" only:"step" form:"retry" help:"For how long it is taken up again after failures that pass. Default: the workflow's."`
	Join            yamlform.Value[string]   `key:"join" enum:"all,any" help:"Of a node with several edges to it: whether it begins when all of them were taken, or one. Edges from skipped nodes do not count. Default: all where independent approvals meet, else any."`
}

func (r *reader) readNode(key, v *yamltree.Node) (Node, draftNode) {
	node := Node{ID: key.Text, Name: key.Text, Line: key.At.Line, Tools: tool.Policy{Otherwise: tool.Allow}}
	draft := draftNode{at: key.At}
	if v.Kind == yamltree.Null {
		r.Complain(key.At, "the node %s is empty; give it a brief, or an approval with the question for a person", key.Text)
		return node, draft
	}
	var file nodeFile
	if !r.Object(v, "the node "+key.Text, &file) {
		draft.outputs.open = true
		return node, draft
	}
	node.Name = cmp.Or(file.Name.Is, node.Name)
	node.Join = Join(file.Join.Is)
	node.Inputs = r.readBindings(file.Inputs, "inputs", site{ofInputs, node.ID})
	if file.Approval.Node != nil {
		r.readApproval(&node, v, file.Approval.Is)
	} else {
		r.readStep(&node, &draft, key, file)
	}
	draft.outputs.list = node.outputFields()
	return node, draft
}

// readApproval reads an approval node, which must not have the keys of a step.
func (r *reader) readApproval(node *Node, v *yamltree.Node, question string) {
	node.Approval = &Approval{Question: question}
	node.MaxAttempts = defaultMaxAttempts
	for _, field := range v.Fields {
		switch key := field.Key.Text; key {
		case "brief", "agent", "model", "view", "tools", "success_criteria", "check", "max_attempts", "retry":
			r.Complain(field.Key.At, "%s is for steps that a model carries out, and %s is an approval; remove %s, or approval", key, node.ID, key)
		case "outputs":
			r.Complain(field.Key.At, "the approval %s has the outputs %s and %s and no others; remove outputs", node.ID, approvedOutput, commentOutput)
		}
	}
}

func (r *reader) readStep(node *Node, draft *draftNode, key *yamltree.Node, file nodeFile) {
	if file.Brief == nil {
		r.Complain(key.At, "the node %s needs a brief, which says what is to be done, or an approval with the question for a person", key.Text)
	}
	node.Brief = r.Text(file.Brief, "brief")
	node.Agent = r.Known(file.Agent, "agent", r.known.Agents)
	node.Model = r.Known(file.Model, "model", r.known.Models)
	node.View = r.Known(file.View, "view", r.known.Views)
	node.Tools = r.readTools(file.Tools)
	outputs := r.readFields(file.Outputs, "output")
	node.Outputs, draft.outputs.open = outputs.list, outputs.open
	node.SuccessCriteria = file.SuccessCriteria.Is
	if check := file.Check; check != nil {
		node.Check = r.readExpression(check, "check", site{ofCheck, node.ID})
	}
	node.MaxAttempts = cmp.Or(file.MaxAttempts.Is, defaultMaxAttempts)
	node.Retry = r.readRetry(file.Retry, r.retry)
}

// readTools reads the tools that the step may use. Default: all.
func (r *reader) readTools(v *yamltree.Node) tool.Policy {
	tools := r.Tools(v, "the step", r.checkTool)
	return tool.Policy{Allow: tools.Allow, Ask: tools.Ask, Deny: tools.Deny, Otherwise: tool.Decision(tools.Otherwise)}
}

// checkTool checks the name of a tool, or a pattern, which may match tools that a server does not have yet.
func (r *reader) checkTool(pattern string) error {
	if err := (tool.Policy{Allow: []string{pattern}}).Check(); err != nil {
		return err
	}
	known := tool.Policy{Allow: r.known.Tools}
	if r.Any || r.known.Tools == nil || strings.Contains(pattern, "*") || known.Decide(pattern) == tool.Allow {
		return nil
	}
	return fmt.Errorf("unknown tool %s%s; MCP servers are defined in the settings", yamlform.Quoted(pattern), yamlform.DidYouMean(pattern, r.known.Tools))
}
