package workflow

import (
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
	"github.com/continuo-log/continuo/tool"
)

const (
	defaultMaxAttempts = 3
	maxAttempts        = 100
	maxRounds          = 1000 // of a loop
)

// draftNode is the data of a node's checks.
type draftNode struct {
	at      position // of its id
	outputs fieldList
}

func (r *reader) readNodes(v *yamltree.Node) {
	if v.Kind == yamltree.Mapping && len(v.Fields) == 0 {
		r.Complain(v.At, "there are no nodes; write a step, such as draft: {brief: Write a draft.}")
	}
	r.Names(v, "nodes", maxNodes, func(key, value *yamltree.Node) {
		if r.Name(key, "a node") {
			node, draft := r.readNode(key, value)
			r.workflow.Nodes, r.drafts = append(r.workflow.Nodes, node), append(r.drafts, draft)
		}
	})
}

var nodeKeys = []string{"name", "brief", "approval", "agent", "model", "view", "tools", "inputs", "outputs", "success_criteria", "check", "max_attempts", "retry", "join"}

func (r *reader) readNode(key, v *yamltree.Node) (Node, draftNode) {
	node := Node{ID: key.Text, Name: key.Text, Line: key.At.Line, Tools: tool.Policy{Otherwise: tool.Allow}}
	draft := draftNode{at: key.At}
	if v.Kind == yamltree.Null {
		r.Complain(key.At, "the node %s says nothing; give it a brief, or an approval with the question for a person", key.Text)
		return node, draft
	}
	keys := r.Mapping(v, "the node "+key.Text, nodeKeys...)
	if keys == nil {
		draft.outputs.open = true
		return node, draft
	}
	if name := r.Line(keys["name"], "name"); name != "" {
		node.Name = name
	}
	node.Join = Join(r.OneOf(keys["join"], "join", string(JoinAll), string(JoinAny)))
	node.Inputs = r.readBindings(keys["inputs"], "inputs", site{ofInputs, node.ID})
	if question := keys["approval"]; question != nil {
		r.readApproval(&node, v, question)
	} else {
		r.readStep(&node, &draft, key, keys)
	}
	draft.outputs.list = node.outputFields()
	return node, draft
}

// readApproval reads an approval node, which must not have the keys of a step.
func (r *reader) readApproval(node *Node, v, question *yamltree.Node) {
	node.Approval = &Approval{Question: r.Text(question, "approval")}
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

func (r *reader) readStep(node *Node, draft *draftNode, key *yamltree.Node, keys map[string]*yamltree.Node) {
	if keys["brief"] == nil {
		r.Complain(key.At, "the node %s needs a brief, which says what is to be done, or an approval with the question for a person", key.Text)
	}
	node.Brief = r.Text(keys["brief"], "brief")
	node.Agent = r.Known(keys["agent"], "agent", r.known.Agents)
	node.Model = r.Known(keys["model"], "model", r.known.Models)
	node.View = r.Known(keys["view"], "view", r.known.Views)
	node.Tools = r.readTools(keys["tools"])
	outputs := r.readFields(keys["outputs"], "output")
	node.Outputs, draft.outputs.open = outputs.list, outputs.open
	node.SuccessCriteria = r.Texts(keys["success_criteria"], "success_criteria")
	if check := keys["check"]; check != nil {
		node.Check = r.readExpression(check, "check", site{ofCheck, node.ID})
	}
	node.MaxAttempts = r.Count(keys["max_attempts"], "max_attempts", maxAttempts)
	if node.MaxAttempts == 0 {
		node.MaxAttempts = defaultMaxAttempts
	}
	node.Retry = r.readRetry(keys["retry"], r.retry)
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
	return fmt.Errorf("unknown tool %s%s; MCP servers stand in the settings", yamlform.Quoted(pattern), yamlform.DidYouMean(pattern, r.known.Tools))
}
