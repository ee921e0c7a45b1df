package render

import (
	"encoding/json"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// CheckResponses checks the input items of a Responses API request that is not stored, by the checklist of
// docs/protocol-rules.md: R1 to R8, as far as a list of items shows it.
func CheckResponses(items []json.RawMessage) []Violation {
	c := responsesChecker{open: map[string]int{}, answered: map[string]bool{}, ids: map[string]bool{}}
	if len(items) == 0 {
		c.hard(0, "R0 empty_list", "there is no item")
	}
	for i, raw := range items {
		c.item(i, raw)
	}
	c.closeCalls(len(items))
	if c.reasoning {
		c.hard(len(items)-1, "R4 reasoning_at_end", "a reasoning item is not followed by the item that it belongs to")
	}
	return c.findings
}

// responsesChecker checks a list item by item.
type responsesChecker struct {
	findings
	open      map[string]int // calls without an output, with the index of their item
	order     []string       // of the open calls
	answered  map[string]bool
	ids       map[string]bool // of items
	reasoning bool            // the item before is reasoning
}

func (c *responsesChecker) item(i int, raw json.RawMessage) {
	item, err := responses.ParseItem(raw)
	if err != nil {
		c.hard(i, "R0 not_an_item", "%s", err)
		return
	}
	if loneSurrogate(raw, 0) >= 0 {
		c.hard(i, "R0 lone_surrogate", "the text holds half of a surrogate pair")
	}
	if item.ID != "" && c.ids[item.ID] {
		c.hard(i, "R7 duplicate_id", "the id %q is that of an earlier item", item.ID)
	}
	c.ids[item.ID] = true
	if c.reasoning && !item.IsModels() {
		c.hard(i-1, "R4 reasoning_at_end", "a reasoning item is not followed by the item that it belongs to")
	}
	c.reasoning = item.Type == responses.TypeReasoning
	switch {
	case item.Type == responses.TypeMessage:
		c.message(i, item)
	case item.Type == responses.TypeItemReference:
		c.hard(i, "R5 unstored_reference", "a request that is not stored refers to the item %q", item.ID)
	case c.reasoning && item.EncryptedContent == nil && len(item.ReasoningParts()) == 0:
		c.hard(i, "R5 unstored_reasoning", "reasoning without encrypted content exists at the provider only")
	case item.IsOutput():
		c.output(i, item)
	default:
		c.call(i, item)
	}
}

func (c *responsesChecker) message(i int, item responses.Item) {
	switch item.Role {
	case "user", "system", "developer":
		c.closeCalls(i)
	case "assistant":
	default:
		c.hard(i, "R0 unknown_role", "the role is %q", item.Role)
		return
	}
	if _, isText := rawjson.String(item.Content); isText {
		return
	}
	var parts []responses.ContentPart
	if json.Unmarshal(item.Content, &parts) != nil {
		c.hard(i, "R0 bad_content", "the content is %s", kindOf(item.Content))
		return
	}
	for _, part := range parts {
		if !isResponsesPart(item.Role, part.Type) {
			c.hard(i, "R0 bad_part", "a message of the role %s has a part of the type %q", item.Role, part.Type)
		}
	}
}

// isResponsesPart reports whether a message may have a type of part.
func isResponsesPart(role, kind string) bool {
	switch kind {
	case "output_text", "refusal":
		return role == "assistant"
	case "input_text":
		return role != "assistant"
	case "input_image", "input_file", "input_audio":
		return role == "user"
	}
	return false
}

func (c *responsesChecker) call(i int, item responses.Item) {
	call, ok := item.Call()
	if !ok {
		return
	}
	if _, open := c.open[call.ID]; open || c.answered[call.ID] {
		c.hard(i, "R3 duplicate_call_id", "the call id %q is that of an earlier call", call.ID)
		return
	}
	if len(call.ID) > 64 {
		c.hard(i, "R0 long_call_id", "the call id %q has more than 64 characters", call.ID)
	}
	if !isName(call.Name) {
		c.hard(i, "R0 bad_name", "the call %q is of %q", call.ID, call.Name)
	}
	if object, err := rawjson.ParseObject(item.Raw); err == nil && stringOf(object.Get("status")) == responses.StatusIncomplete {
		c.hard(i, "R8 incomplete_call", "the call %q was cut off", call.ID)
	}
	c.open[call.ID] = i
	c.order = append(c.order, call.ID)
}

func (c *responsesChecker) output(i int, item responses.Item) {
	if _, open := c.open[item.CallID]; !open {
		code := "R1 orphan_output"
		if c.answered[item.CallID] {
			code = "R3 duplicate_output"
		}
		c.hard(i, code, "there is no open call %q before its output", item.CallID)
		return
	}
	delete(c.open, item.CallID)
	c.answered[item.CallID] = true
	if item.Output == nil {
		c.hard(i, "R0 no_output", "the output of %q is missing", item.CallID)
	}
}

// closeCalls reports calls without an output, at the end or before the next input.
func (c *responsesChecker) closeCalls(next int) {
	for _, id := range c.order {
		if index, open := c.open[id]; open {
			c.hard(index, "R2 unanswered", "the call %q has no output before item %d", id, next)
			delete(c.open, id)
		}
	}
	c.order = nil
}
