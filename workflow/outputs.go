package workflow

import (
	"encoding/json"
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

// lastObject finds the last fenced block of an answer that may be a JSON object, else an object that the answer
// begins with. It takes time in proportion to the answer.
func lastObject(answer string) (block string, found bool) {
	fence, start := "", 0 // of the block that is open
	take := func(text string) {
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") {
			block, found = text, true
		}
	}
	for at := 0; at < len(answer); {
		end := at + len(answer[at:])
		if n := strings.IndexByte(answer[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := strings.TrimSpace(answer[at:end])
		switch marks := fenceOf(line); {
		case marks == "":
		case fence == "":
			fence, start = marks, end
		case marks == line && marks[0] == fence[0] && len(marks) >= len(fence):
			take(answer[start:at])
			fence = ""
		}
		at = end
	}
	if fence != "" { // the answer ends within a block
		take(answer[start:])
	}
	if text := strings.TrimSpace(answer); !found && strings.HasPrefix(text, "{") {
		return firstValue(text), true
	}
	return block, found
}

// fenceOf returns the marks that a line begins a fence with: three or more ` or ~; "" for none.
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		if rest := strings.TrimLeft(line, mark); len(line)-len(rest) >= 3 {
			return line[:len(line)-len(rest)]
		}
	}
	return ""
}

// firstValue is the JSON value that a text begins with, or all of it where that cannot be read.
func firstValue(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	var value json.RawMessage
	if decoder.Decode(&value) != nil {
		return text
	}
	return string(value)
}
