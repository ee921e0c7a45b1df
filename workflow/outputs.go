package workflow

import (
	"fmt"
	"strings"
)

// textOutput is the output of a step without declared ones: its whole answer.
const textOutput = "text"

// The outputs of an approval node.
const (
	approvedOutput = "approved"
	commentOutput  = "comment"
)

// outputFields are the declared or default outputs of a node.
func (n *Node) outputFields() []Field {
	switch {
	case n.Approval != nil:
		return []Field{{Name: approvedOutput, Type: Boolean}, {Name: commentOutput, Type: String}}
	case len(n.Outputs) == 0:
		return []Field{{Name: textOutput, Type: String}}
	}
	return n.Outputs
}

// Gives are the declared or default outputs of a node.
func (n *Node) Gives() []Field { return n.outputFields() }

// answer is a parsed answer of a step.
type answer struct {
	outputs map[string]any // the valid ones; all of them where problem is ""
	repairs []string       // corrections of values that were not exactly as declared
	problem string         // what is missing or invalid
}

// readAnswer parses a step's outputs from its answer. Said is all text of the step in this visit, in pieces, the
// answer last: an answer that broke off and was continued is one text. Kept are outputs of an earlier answer of the
// visit, which apply unless this answer contains them.
func (n *Node) readAnswer(texts []string, known map[string]any) answer {
	if len(n.Outputs) == 0 {
		whole := strings.TrimSpace(strings.Join(texts, ""))
		if whole == "" {
			return answer{problem: "it is empty"}
		}
		return answer{outputs: map[string]any{textOutput: whole}}
	}
	read := n.readText(strings.Join(texts, ""), known)
	if read.problem != "" && len(texts) > 1 { // the last piece may have restarted the answer
		if last := n.readText(texts[len(texts)-1], known); last.problem == "" {
			return last
		}
	}
	return read
}

// readText parses the declared outputs from a text: from the JSON object with the most of them; of several such
// objects, from the last.
func (n *Node) readText(text string, known map[string]any) answer {
	best, unreadable := reading{}, ""
	found := false
	consider := func(candidates []string) {
		for _, candidate := range candidates {
			value, repairs, err := parseLenient(candidate)
			if err != nil {
				unreadable = err.Error()
				continue
			}
			values, unwrapped, ok := n.unwrap(value)
			if !ok {
				continue
			}
			read := readFields(n.Outputs, values)
			read.repairs = append(append(repairs, unwrapped...), read.repairs...)
			if len(read.problems) > 0 && read.present == 0 {
				continue
			}
			if !found || len(read.values) >= len(best.values) {
				best, found = read, true
			}
		}
	}
	blocks := fencedBlocks(text)
	consider(blocks)
	if !found || len(best.problems) > 0 {
		inBlocks := unreadable // braces in prose are no attempt at JSON
		consider(bracketed(text))
		unreadable = inBlocks
	}
	if trimmed := strings.TrimSpace(text); !found && unreadable == "" && strings.HasPrefix(trimmed, "{") {
		if _, _, err := parseLenient(trimmed); err != nil {
			unreadable = err.Error()
		}
	}
	switch {
	case found:
		return n.complete(best, known)
	case unreadable != "":
		return answer{outputs: known, problem: "the JSON block at its end cannot be read: " + unreadable}
	}
	return answer{outputs: known, problem: "it does not end with one JSON object in a fenced block that has " + n.fieldNames(known)}
}

// complete adds kept outputs to a reading.
func (n *Node) complete(read reading, known map[string]any) answer {
	outputs, problems := map[string]any{}, read.problems
	for name, value := range known {
		outputs[name] = value
	}
	for name, value := range read.values {
		outputs[name] = value
	}
	if len(known) > 0 {
		_, problems = takeFields(n.Outputs, outputs)
	}
	if len(problems) == 0 {
		return answer{outputs: outputs, repairs: read.repairs}
	}
	return answer{outputs: outputs, repairs: read.repairs, problem: "in the JSON block at its end " + strings.Join(problems, ", and ")}
}

// unwrap finds the object with the declared outputs in a value: the value itself, the only object of a list, or the
// object under its only member.
func (n *Node) unwrap(value any) (values map[string]any, repairs []string, ok bool) {
	for range 3 {
		switch inner := value.(type) {
		case []any:
			if len(inner) != 1 {
				return nil, nil, false
			}
			value = inner[0]
			repairs = append(repairs, "the one object of a list was taken")
		case map[string]any:
			name, only := onlyObject(inner)
			if only == nil || readFields(n.Outputs, inner).present > 0 {
				return inner, repairs, true
			}
			value = only
			repairs = append(repairs, fmt.Sprintf("the object under %q was taken", firstWords(name)))
		default:
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// onlyObject is the only member of an object, if it is an object.
func onlyObject(object map[string]any) (string, any) {
	if len(object) == 1 {
		for name, value := range object {
			if inner, ok := value.(map[string]any); ok {
				return name, inner
			}
		}
	}
	return "", nil
}

// fieldNames are the names of the declared outputs without kept ones.
func (n *Node) fieldNames(known map[string]any) string {
	var names []string
	for _, field := range n.Outputs {
		if _, there := known[field.Name]; !there {
			names = append(names, field.Name)
		}
	}
	return strings.Join(names, ", ")
}

// split divides the declared outputs into kept ones and those that an answer must contain.
func (n *Node) split(values map[string]any) (known, missing []string) {
	for _, field := range n.Outputs {
		if _, there := values[field.Name]; there {
			known = append(known, field.Name)
		} else if !field.Optional {
			missing = append(missing, field.Name)
		}
	}
	return known, missing
}

// maxCandidates bounds how many sections of an answer are parsed, the last ones.
const maxCandidates = 64

// fencedBlocks finds the fenced blocks of an answer that may be JSON objects or lists, in order. The time is linear
// in the length of the answer.
func fencedBlocks(answer string) (blocks []string) {
	fence, start := "", 0 // of the block that is open
	take := func(text string) {
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			blocks = append(blocks, text)
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
		case fence == "" && len(line) > 2*len(marks) && strings.HasSuffix(line, marks): // opened and closed on one line
			take(strings.TrimLeft(line[len(marks):len(line)-len(marks)], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "))
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
	return lastOf(blocks)
}

// lastOf are the last maxCandidates.
func lastOf(candidates []string) []string {
	return candidates[max(0, len(candidates)-maxCandidates):]
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

// bracketed finds the outermost sections of a text between matching brackets, in order; an opening bracket that is
// never closed is ignored. The time is linear in the length of the text.
func bracketed(text string) (stretches []string) {
	type stretch struct{ from, to int }
	var open []int
	var found []stretch
	inString := false
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case inString && c == '\\':
			at++
		case c == '"' && len(open) > 0:
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			open = append(open, at)
		case (c == '}' || c == ']') && len(open) > 0 && text[open[len(open)-1]] == c-2:
			from := open[len(open)-1]
			open = open[:len(open)-1]
			for len(found) > 0 && found[len(found)-1].from > from {
				found = found[:len(found)-1] // it is inside this one
			}
			found = append(found, stretch{from, at + 1})
		}
	}
	for _, s := range found {
		stretches = append(stretches, text[s.from:s.to])
	}
	return lastOf(stretches)
}
