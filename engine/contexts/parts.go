package contexts

import (
	"bytes"
	"encoding/json"

	"github.com/continuo-log/continuo/window"
)

// RequestPart is a system text, a tool or a message of a request's body.
type RequestPart struct {
	Kind string `json:"kind" enum:"system,tool,message"`
	// Role is the message's, as the protocol names it; Name the tool's.
	Role string `json:"role,omitempty"`
	Name string `json:"name,omitempty"`
	// Seq is the entry that the message shows; absent where it shows none, or where the protocol joins or splits messages.
	Seq int64 `json:"seq,omitempty"`
	// Offset and Bytes say where the part is in the body.
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`
}

// partKinds are the members of bodies that have parts, of all protocols.
var partKinds = map[string]string{
	"system": "system", "instructions": "system", "systemInstruction": "system",
	"messages": "message", "input": "message", "contents": "message", "tools": "tool",
}

// partsOf finds the parts of a body, in order; nil for a body that is no JSON object.
func partsOf(body []byte, plan *window.Plan) []RequestPart {
	in := json.NewDecoder(bytes.NewReader(body))
	if opened, err := in.Token(); err != nil || opened != json.Delim('{') {
		return nil
	}
	var parts []RequestPart
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return nil
		}
		if kind := partKinds[name.(string)]; kind != "" {
			parts = append(parts, membersOf(kind, value, in.InputOffset()-int64(len(value)))...)
		}
	}
	nameEntries(parts, plan)
	return parts
}

// membersOf are the parts of one member of a body, which begins at an offset: the elements of a list, or the whole of it.
func membersOf(kind string, value json.RawMessage, offset int64) []RequestPart {
	if len(value) == 0 || value[0] != '[' {
		return []RequestPart{partOf(kind, value, offset)}
	}
	var parts []RequestPart
	in := json.NewDecoder(bytes.NewReader(value))
	if _, err := in.Token(); err != nil {
		return nil
	}
	for in.More() {
		var element json.RawMessage
		if err := in.Decode(&element); err != nil {
			return parts
		}
		parts = append(parts, partOf(kind, element, offset+in.InputOffset()-int64(len(element))))
	}
	return parts
}

func partOf(kind string, value json.RawMessage, offset int64) RequestPart {
	part := RequestPart{Kind: kind, Offset: offset, Bytes: int64(len(value))}
	var known struct {
		Role     string `json:"role"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(value, &known) != nil { // a text
		return part
	}
	switch kind {
	case "tool":
		if part.Name = known.Name; part.Name == "" {
			part.Name = known.Function.Name
		}
	case "message":
		part.Role = known.Role
		if known.Role == "system" || known.Role == "developer" {
			part.Kind = "system"
		}
	}
	return part
}

// nameEntries says which entries messages show, where the body has the plan's messages one by one behind system messages.
func nameEntries(parts []RequestPart, plan *window.Plan) {
	last := len(parts)
	for last > 0 && parts[last-1].Kind == "tool" {
		last--
	}
	first := last
	for first > 0 && (parts[first-1].Kind == "message" || parts[first-1].Kind == "system" && parts[first-1].Role != "") {
		first--
	}
	first += max(0, last-first-len(plan.Messages))
	if last-first != len(plan.Messages) {
		return
	}
	for i := range plan.Messages {
		if entry := plan.Messages[i].Entry; entry != nil && (parts[first+i].Role == "" || sameRole(parts[first+i].Role, string(entry.Role))) {
			parts[first+i].Seq = entry.Seq
		}
	}
}

// sameRole reports whether a protocol's role may be that of an entry.
func sameRole(shown, role string) bool {
	switch role {
	case "assistant":
		return shown == "assistant" || shown == "model"
	case "tool":
		return shown == "tool" || shown == "user"
	}
	return shown == role || shown == "user" || shown == "developer"
}
