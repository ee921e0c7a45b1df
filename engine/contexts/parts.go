package contexts

import (
	"bytes"
	"encoding/json"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/window"
)

// RequestPart is a system text, a tool or a message of a request's body.
type RequestPart struct {
	Kind string `json:"kind" enum:"system,tool,message"`
	// Role is the message's, as the protocol names it; Name the tool's, or `profile` for what is known of the user.
	Role string `json:"role,omitempty"`
	Name string `json:"name,omitempty"`
	// Seq is the entry that the message shows; absent where it shows none, or where the protocol joins or splits messages.
	Seq int64 `json:"seq,omitempty"`
	// Offset and Bytes say where the part is in the body.
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`
	// Tokens is what the part counts for. The parts' tokens add up to the plan's: `totals.estimated_tokens` and
	// `totals.prompt.tokens`; those of a forwarded request to what its provider counted. A message that shows one entry has the
	// entry's count; what is counted for several parts together is divided by their bytes.
	Tokens int `json:"tokens"`
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
	sizeParts(parts, plan, nameEntries(parts, plan))
	nameProfile(parts, body, plan)
	return parts
}

// profilePart is the name of the part with the profile.
const profilePart = "profile"

// nameProfile names the system text that is the profile, where the protocol joins it with no other one, and gives it its own
// tokens.
func nameProfile(parts []RequestPart, body []byte, plan *window.Plan) {
	if plan.Profile == nil || plan.Profile.Entry == nil {
		return
	}
	text := plan.Profile.Entry.Content.String()
	for i := range parts {
		part := &parts[i]
		if part.Kind != "system" || partText(body[part.Offset:part.Offset+part.Bytes]) != text {
			continue
		}
		others := make([]*RequestPart, 0, len(parts))
		rest := plan.Totals.PromptSize.Tokens - plan.Profile.Size.Tokens
		for j := range parts {
			if parts[j].Kind != "message" && parts[j].Seq == 0 && j != i {
				others = append(others, &parts[j])
			}
		}
		part.Name, part.Tokens = profilePart, plan.Profile.Size.Tokens
		divide(others, rest)
		return
	}
}

// addParts adds the tools of a context's reader, under the names that requests have for them, and the parts of what it is sent.
func (c *Context) addParts(envelope continuo.Envelope) error {
	c.Tools = slices.Clone(envelope.Tools)
	for i := range c.Tools {
		c.Tools[i].Name = render.ToolName(c.Tools[i].Name)
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	c.Parts = partsOf(body, c.Plan)
	return nil
}

// body is the object whose parts Parts are.
func (c *Context) body() ([]byte, error) {
	return json.Marshal(struct {
		Messages []json.RawMessage   `json:"messages"`
		Tools    []continuo.ToolSpec `json:"tools,omitempty"`
	}{Messages: c.Messages, Tools: c.Tools})
}

// sizeParts gives the parts their tokens. First is the part with the plan's first message; -1 where they are not in the body
// one by one.
func sizeParts(parts []RequestPart, plan *window.Plan, first int) {
	var prompt, history []*RequestPart
	for i := range parts {
		switch {
		case first >= 0 && i >= first && i < first+len(plan.Messages):
			parts[i].Tokens = plan.Messages[i-first].Size.Tokens
		case first < 0 && parts[i].Kind == "message":
			history = append(history, &parts[i])
		default:
			prompt = append(prompt, &parts[i])
		}
	}
	divide(history, plan.Totals.Tokens)
	divide(prompt, plan.Totals.PromptSize.Tokens)
}

// sizeForwarded gives the parts of a forwarded request their tokens: what the provider counted, divided by their bytes; where
// it said nothing, a quarter of these.
func sizeForwarded(parts []RequestPart, round *continuo.Round) {
	tokens := 0
	all := make([]*RequestPart, len(parts))
	for i := range parts {
		all[i] = &parts[i]
		tokens += int(parts[i].Bytes+3) / 4
	}
	if round.Usage != nil && round.Usage.InputTokens > 0 {
		tokens = round.Usage.InputTokens
	}
	divide(all, tokens)
}

// divide divides tokens among parts by their bytes.
func divide(parts []*RequestPart, tokens int) {
	var all, before int64
	for _, part := range parts {
		all += part.Bytes
	}
	for _, part := range parts {
		after := before + part.Bytes
		part.Tokens = int(after*int64(tokens)/all - before*int64(tokens)/all)
		before = after
	}
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

// nameEntries says which entries messages show, where the body has the plan's messages one by one behind system messages, and
// returns the first of these parts; -1 for another body.
func nameEntries(parts []RequestPart, plan *window.Plan) int {
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
		return -1
	}
	for i := range plan.Messages {
		if entry := plan.Messages[i].Entry; entry != nil && (parts[first+i].Role == "" || sameRole(parts[first+i].Role, string(entry.Role))) {
			parts[first+i].Seq = entry.Seq
		}
	}
	return first
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
