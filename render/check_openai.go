package render

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// CheckOpenAIChat checks a chat completions message list against the rules of the protocol, by the checklist
// of docs/protocol-rules.md: C1 to C11, of which C7 leaves the order of answers free. Deprecated function
// calls are checked too. The findings of one message are adjacent, but a call without an answer is reported
// at the end of its group, with the index of the message that made it.
func CheckOpenAIChat(messages []json.RawMessage) []Violation {
	c := openAIChecker{earlier: map[string]bool{}}
	if len(messages) == 0 {
		c.hard(0, "C11 empty_list", "there is no message")
	}
	for i, raw := range messages {
		c.message(i, raw)
	}
	c.closeGroup("C6 unanswered_at_end")
	if n := len(messages); n > 0 && c.last == "assistant" {
		c.lint(n-1, "C11 last_message", "the last message is the assistant's, which some servers refuse")
	}
	return c.findings
}

// openAIChecker checks a list message by message.
type openAIChecker struct {
	findings
	earlier  map[string]bool // ids of calls in groups that are closed
	group    *callGroup      // of the preceding messages, nil when there is none
	function string          // name of the function call in the message before
	last     string          // role of the message before
}

// callGroup is the state of the calls of one assistant message.
type callGroup struct {
	index int
	ids   []string // each once, in order
	open  map[string]bool
}

func (c *openAIChecker) message(i int, raw json.RawMessage) {
	m, err := rawjson.ParseObject(raw)
	if err != nil {
		c.hard(i, "C1 not_an_object", "the message is no JSON object")
		return
	}
	if loneSurrogate(raw, 0) >= 0 {
		c.hard(i, "C1 lone_surrogate", "the text holds half of a surrogate pair")
	}
	role := stringOf(m.Get("role"))
	function := c.function
	c.function = ""
	if role != "tool" {
		c.closeGroup("C6 unanswered")
	}
	if function != "" && role != "function" {
		c.lint(i-1, "C6 unanswered_function", "the function call %q has no result", function)
	}
	switch role {
	case "system", "developer", "user":
		c.content(i, role, m.Get("content"))
	case "assistant":
		c.assistant(i, m)
	case "tool":
		c.content(i, role, m.Get("content"))
		c.answer(i, m)
	case "function":
		c.content(i, role, m.Get("content"))
		if name := stringOf(m.Get("name")); name == "" || name != function {
			c.hard(i, "C4 orphan_function", "no function call before it is named %q", name)
		}
	default:
		c.hard(i, "C1 unknown_role", "the role %q is not one of developer, system, user, assistant, tool, function", role)
	}
	if name := m.Get("name"); !rawjson.IsNull(name) && !isSpeaker(stringOf(name)) {
		c.lint(i, "C8 bad_name", "the name %s is empty or has white space or one of < | \\ / >", name)
	}
	c.last = role
}

// isSpeaker reports whether OpenAI accepts a message's name; the characters are those that its error messages
// state. Rendering is stricter, as other servers are.
func isSpeaker(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`<|\/>`, r) })
}

// content checks the content of any role but assistant.
func (c *openAIChecker) content(i int, role string, content json.RawMessage) {
	switch kindOf(content) {
	case "absent", "null":
		c.hard(i, "C1 null_content", "a %s message needs content", role)
	case "string":
	case "array":
		c.parts(i, role, content)
	default:
		c.hard(i, "C1 bad_content", "content must be a string or a list of parts")
	}
}

func (c *openAIChecker) parts(i int, role string, content json.RawMessage) {
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil || len(parts) == 0 {
		c.hard(i, "C2 empty_content", "the list of parts is empty")
		return
	}
	for n, raw := range parts {
		part, err := rawjson.ParseObject(raw)
		kind := stringOf(part.Get("type"))
		switch {
		case err != nil || kind == "":
			c.hard(i, "C2 bad_part", "part %d is no object with a type", n)
		case kind == "text":
			if kindOf(part.Get("text")) != "string" {
				c.hard(i, "C2 bad_part", "part %d has type text but no text", n)
			}
		case kind == "refusal" && role == "assistant":
			if len(parts) > 1 {
				c.hard(i, "C2 bad_part", "a refusal must be the only part")
			}
		case role == "tool":
			c.hard(i, "C10 tool_part", "a tool message has a part of type %s, but may have text only", kind)
		case role != "user" || !isOpenAIUserPart(kind):
			c.hard(i, "C2 bad_part", "a %s message cannot have a part of type %s", role, kind)
		}
	}
}

func (c *openAIChecker) assistant(i int, m rawjson.Object) {
	calls, content := m.Get("tool_calls"), m.Get("content")
	if call, err := rawjson.ParseObject(m.Get("function_call")); err == nil {
		c.function = stringOf(call.Get("name"))
	}
	silent := rawjson.IsNull(calls) && c.function == ""
	switch kindOf(content) {
	case "absent", "null":
		if silent && rawjson.IsNull(m.Get("refusal")) && rawjson.IsNull(m.Get("audio")) {
			c.hard(i, "C2 empty_assistant", "an assistant message needs content or tool_calls")
		}
	case "string":
		if silent && stringOf(content) == "" {
			c.lint(i, "C2 blank_assistant", "the assistant message has neither text nor calls")
		}
	default:
		c.content(i, "assistant", content)
	}
	if !rawjson.IsNull(calls) {
		c.calls(i, calls)
	}
}

func (c *openAIChecker) calls(i int, list json.RawMessage) {
	var calls []json.RawMessage
	if json.Unmarshal(list, &calls) != nil || len(calls) == 0 {
		c.hard(i, "C3 empty_tool_calls", "tool_calls must be left out or list at least one call")
		return
	}
	c.group = &callGroup{index: i, open: map[string]bool{}}
	for n, raw := range calls {
		call, _ := rawjson.ParseObject(raw)
		id := stringOf(call.Get("id"))
		c.call(i, n, id, call)
		switch {
		case id == "":
			c.hard(i, "C3 missing_call_id", "call %d has no id", n)
			continue
		case c.group.open[id]:
			c.hard(i, "C3 duplicate_call_id", "two calls have the id %q", id)
			continue
		case c.earlier[id]:
			c.lint(i, "C9 reused_call_id", "the id %q was used by an earlier message", id)
		}
		if len(id) > maxOpenAICallID {
			c.lint(i, "C3 long_call_id", "the id %q has more than %d bytes", id, maxOpenAICallID)
		}
		c.group.ids = append(c.group.ids, id)
		c.group.open[id] = true
	}
}

// call checks one call of an assistant message.
func (c *openAIChecker) call(i, n int, id string, call rawjson.Object) {
	inner, text := "function", "arguments"
	if stringOf(call.Get("type")) == "custom" {
		inner, text = "custom", "input"
	}
	function, err := rawjson.ParseObject(call.Get(inner))
	name, arguments := stringOf(function.Get("name")), function.Get(text)
	switch {
	case err != nil || name == "" || kindOf(arguments) != "string":
		c.hard(i, "C3 bad_function", "call %d (%s) needs %s with a name and %s that are a string", n, id, inner, text)
		return
	case !isName(name):
		c.hard(i, "C8 bad_function_name", "the name %q is not made of 1 to 64 letters, digits, _ and -", name)
	}
	if kind := stringOf(call.Get("type")); kind != "function" && kind != "custom" {
		c.lint(i, "C3 call_type", "call %d (%s) has the type %q, not function or custom", n, id, kind)
	}
	if inner == "function" && !json.Valid([]byte(stringOf(arguments))) {
		c.lint(i, "C8 bad_arguments_json", "the arguments of %s (%s) are no JSON", name, id)
	}
}

func (c *openAIChecker) answer(i int, m rawjson.Object) {
	id := stringOf(m.Get("tool_call_id"))
	switch {
	case id == "":
		c.hard(i, "C1 tool_missing_id", "a tool message needs a tool_call_id")
	case c.group == nil:
		c.hard(i, "C4 orphan_tool", "the tool message answers %q, but no message with tool_calls precedes it", id)
	case c.group.open[id]:
		c.group.open[id] = false
	case slices.Contains(c.group.ids, id):
		c.hard(i, "C5 duplicate_answer", "the call %q has its answer already", id)
	case c.earlier[id]:
		c.hard(i, "C5 wrong_group", "the call %q was made by an earlier message", id)
	default:
		c.hard(i, "C5 unknown_call_id", "no call has the id %q", id)
	}
}

// closeGroup ends the group, if there is one, and reports its calls without an answer.
func (c *openAIChecker) closeGroup(code string) {
	if c.group == nil {
		return
	}
	var missing []string
	for _, id := range c.group.ids {
		if c.group.open[id] {
			missing = append(missing, id)
		}
		c.earlier[id] = true
	}
	if len(missing) > 0 {
		c.hard(c.group.index, code, "the calls %q have no answer", missing)
	}
	c.group = nil
}
