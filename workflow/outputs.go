package workflow

import (
	"fmt"
	"strings"
)

// textOutput is the output of a step that declares none: its whole answer.
const textOutput = "text"

// The outputs of an approval node.
const (
	approvedOutput = "approved"
	commentOutput  = "comment"
)

// outputFields are the outputs of a node, declared or not.
func (n *Node) outputFields() []Field {
	switch {
	case n.Approval != nil:
		return []Field{{Name: approvedOutput, Type: Boolean}, {Name: commentOutput, Type: String}}
	case len(n.Outputs) == 0:
		return []Field{{Name: textOutput, Type: String}}
	}
	return n.Outputs
}

// readAnswer takes a step's outputs out of its answer, or says what is wrong with it. Said is everything that the
// step said in this visit, in pieces, the answer last: an answer that broke off and went on is one.
func (n *Node) readAnswer(said []string) (outputs map[string]any, problem string) {
	if len(n.Outputs) == 0 {
		whole := strings.TrimSpace(strings.Join(said, ""))
		if whole == "" {
			return nil, "it says nothing"
		}
		return map[string]any{textOutput: whole}, ""
	}
	outputs, problem = n.readBlock(said[len(said)-1])
	if problem != "" && len(said) > 1 { // the block may have begun before the answer broke off
		if joined, none := n.readBlock(strings.Join(said, "")); none == "" {
			return joined, ""
		}
	}
	return outputs, problem
}

// readBlock takes the declared outputs out of a text.
func (n *Node) readBlock(text string) (outputs map[string]any, problem string) {
	block, found := lastObject(text)
	if !found {
		return nil, "it does not end with one JSON object in a fenced block that has " + n.fieldNames()
	}
	values, err := decodeObject([]byte(block))
	if err != nil {
		return nil, fmt.Sprintf("the JSON block at its end cannot be read: %s", err)
	}
	outputs, problems := takeFields(n.Outputs, values)
	if len(problems) > 0 {
		return nil, "in the JSON block at its end " + strings.Join(problems, ", and ")
	}
	return outputs, ""
}

func (n *Node) fieldNames() string {
	names := make([]string, len(n.Outputs))
	for i, field := range n.Outputs {
		names[i] = field.Name
	}
	return strings.Join(names, ", ")
}

// lastObject finds the last fenced block of an answer that may be a JSON object, or an answer that is nothing else.
func lastObject(answer string) (block string, found bool) {
	if text := strings.TrimSpace(answer); strings.HasPrefix(text, "{") {
		return text, true
	}
	lines := strings.Split(answer, "\n")
	end := -1
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if !strings.HasPrefix(line, "```") {
			continue
		}
		if line == "```" && end < 0 {
			end = i
			continue
		}
		if end < 0 {
			end = len(lines) // the answer ends within the block
		}
		if block := strings.TrimSpace(strings.Join(lines[i+1:end], "\n")); strings.HasPrefix(block, "{") {
			return block, true
		}
		end = -1
		if line == "```" {
			end = i
		}
	}
	return "", false
}
