package workflow

import (
	"strings"

	"github.com/continuo-log/continuo/tool"
)

const (
	defaultMaxAttempts = 3
	mostAttempts       = 100
	mostRounds         = 1000 // of a loop
)

// draftNode is what is known of a node beside the node itself.
type draftNode struct {
	at      place // of its id
	outputs fieldList
}

func (r *reader) readNodes(v *yamlValue) {
	if v.kind == yamlMapping && len(v.fields) == 0 {
		r.complain(v.at, "there are no nodes; write a step, such as draft: {brief: Write a draft.}")
	}
	r.names(v, "nodes", maxNodes, func(key, value *yamlValue) {
		if r.readName(key, "a node") {
			node, draft := r.readNode(key, value)
			r.workflow.Nodes, r.drafts = append(r.workflow.Nodes, node), append(r.drafts, draft)
		}
	})
}

var nodeKeys = []string{"name", "brief", "approval", "agent", "model", "view", "tools", "inputs", "outputs", "success_criteria", "check", "max_attempts"}

func (r *reader) readNode(key, v *yamlValue) (Node, draftNode) {
	node := Node{ID: key.text, Name: key.text, Line: key.at.line, Tools: tool.Policy{Otherwise: tool.Allow}}
	draft := draftNode{at: key.at}
	if v.kind == yamlNull {
		r.complain(key.at, "the node %s says nothing; give it a brief, or an approval with the question for a person", key.text)
		return node, draft
	}
	keys := r.mapping(v, "the node "+key.text, nodeKeys...)
	if keys == nil {
		draft.outputs.open = true
		return node, draft
	}
	if name := r.readLine(keys["name"], "name"); name != "" {
		node.Name = name
	}
	node.Inputs = r.readBindings(keys["inputs"], "inputs", site{ofInputs, node.ID})
	if question := keys["approval"]; question != nil {
		r.readApproval(&node, v, question)
	} else {
		r.readStep(&node, &draft, key, keys)
	}
	draft.outputs.list = node.outputFields()
	return node, draft
}

// readApproval reads a person's decision, which has nothing that a model would need.
func (r *reader) readApproval(node *Node, v, question *yamlValue) {
	node.Approval = &Approval{Question: r.readText(question, "approval")}
	node.MaxAttempts = defaultMaxAttempts
	for _, field := range v.fields {
		switch key := field.key.text; key {
		case "brief", "agent", "model", "view", "tools", "success_criteria", "check", "max_attempts":
			r.complain(field.key.at, "%s is for steps that a model carries out, and %s is an approval; remove %s, or approval", key, node.ID, key)
		case "outputs":
			r.complain(field.key.at, "the approval %s has the outputs %s and %s and no others; remove outputs", node.ID, approvedOutput, commentOutput)
		}
	}
}

func (r *reader) readStep(node *Node, draft *draftNode, key *yamlValue, keys map[string]*yamlValue) {
	if keys["brief"] == nil {
		r.complain(key.at, "the node %s needs a brief, which says what is to be done, or an approval with the question for a person", key.text)
	}
	node.Brief = r.readText(keys["brief"], "brief")
	node.Agent = r.readKnown(keys["agent"], "agent", r.known.Agents)
	node.Model = r.readKnown(keys["model"], "model", r.known.Models)
	node.View = r.readKnown(keys["view"], "view", r.known.Views)
	if tools := keys["tools"]; tools != nil {
		node.Tools = r.readTools(tools)
	}
	outputs := r.readFields(keys["outputs"], "output")
	node.Outputs, draft.outputs.open = outputs.list, outputs.open
	node.SuccessCriteria = r.readTexts(keys["success_criteria"], "success_criteria")
	if check := keys["check"]; check != nil {
		node.Check = r.readExpression(check, "check", site{ofCheck, node.ID})
	}
	node.MaxAttempts = r.readCount(keys["max_attempts"], "max_attempts", mostAttempts)
	if node.MaxAttempts == 0 {
		node.MaxAttempts = defaultMaxAttempts
	}
}

// readTools reads a policy, or the list of the only tools that the step may use.
func (r *reader) readTools(v *yamlValue) tool.Policy {
	if v.kind == yamlList {
		return tool.Policy{Allow: r.readPatterns(v, "tools"), Otherwise: tool.Deny}
	}
	policy := tool.Policy{Otherwise: tool.Allow}
	if v.kind != yamlMapping {
		r.complain(v.at, "tools must be a list of the tools that the step may use, or a mapping with allow, ask, deny and otherwise, not %s", v.kind)
		return policy
	}
	keys := r.mapping(v, "tools", "allow", "ask", "deny", "otherwise")
	policy.Allow = r.readPatterns(keys["allow"], "allow")
	policy.Ask = r.readPatterns(keys["ask"], "ask")
	policy.Deny = r.readPatterns(keys["deny"], "deny")
	if otherwise := r.readWord(keys["otherwise"], "otherwise", string(tool.Allow), string(tool.Ask), string(tool.Deny)); otherwise != "" {
		policy.Otherwise = tool.Decision(otherwise)
	}
	return policy
}

// readPatterns reads patterns of tools' names, and complains where each stands.
func (r *reader) readPatterns(v *yamlValue, key string) []string {
	if v == nil {
		return nil
	}
	if v.kind != yamlList {
		r.complain(v.at, "%s must be a list of tools, not %s", key, v.kind)
		return nil
	}
	patterns := []string{}
	for _, item := range v.items {
		pattern := r.readText(item, "each of "+key)
		if pattern == "" {
			continue
		}
		if err := (tool.Policy{Allow: []string{pattern}}).Check(); err != nil {
			r.complain(item.at, "%s: %s", key, strings.TrimPrefix(err.Error(), "allow: "))
			continue
		}
		patterns = append(patterns, pattern)
	}
	return patterns
}
