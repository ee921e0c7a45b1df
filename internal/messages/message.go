package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Repairs that are no rules of the log.
const (
	RuleEmptyToolCalls continuo.Rule = "empty_tool_calls"
	RuleBadContent     continuo.Rule = "bad_content"
)

// Options configures how messages are read.
type Options struct {
	// Provider is the key of Entry.Vendor under which data are kept that the entry's own fields cannot represent. With
	// an empty one they are dropped.
	Provider string
	// DropMarks leaves out cache_control, which a client moves from message to message.
	DropMarks bool
}

// Message is an entry as it was read, with what its own fields do not say.
type Message struct {
	Entry continuo.Entry
	// Repairs are the changes that made an entry of the message.
	Repairs []Repair
	// Hidden says that a repair hid the entry: it shows nothing.
	Hidden bool
	// Blocks are the Anthropic blocks that the entry's own fields cannot reproduce.
	Blocks []json.RawMessage
	// Positions are the positions of the blocks that became this entry, where a message became several entries.
	Positions []int
	// String says that the content of an assistant's Anthropic message was a string.
	String bool
	// Legacy says that the call was a function_call, or the result a message of the role function.
	Legacy bool
	// ReasoningField names the field that held the reasoning, when it was not reasoning_content.
	ReasoningField string
}

// Repair is a change that made an entry of a message which breaks a rule.
type Repair struct {
	Rule continuo.Rule
	Text string // a sentence
}

func (m *Message) repair(rule continuo.Rule, format string, args ...any) {
	m.Repairs = append(m.Repairs, Repair{rule, fmt.Sprintf(format, args...)})
}

// roles maps other programs' names of the four roles.
var roles = map[string]continuo.Role{
	"system": continuo.System, "user": continuo.User, "assistant": continuo.Assistant, "tool": continuo.Tool,
	"developer": continuo.System, "function": continuo.Tool,
}

// foreignRoles are not roles of the protocol; any other unknown role becomes the user.
var foreignRoles = map[string]continuo.Role{
	"model": continuo.Assistant, "ai": continuo.Assistant, "bot": continuo.Assistant, "agent": continuo.Assistant,
	"human": continuo.User,
}

// setRole maps a role; an unknown one is a repair.
func (m *Message) setRole(name string, message rawjson.Object) {
	if role, ok := roles[name]; ok {
		m.Entry.Role = role
		return
	}
	lower := strings.ToLower(name)
	role, ok := roles[lower]
	if !ok {
		role = foreignRoles[lower]
	}
	if role == "" {
		role = continuo.User
		if raw := message.Get("tool_calls"); !rawjson.IsNull(raw) {
			role = continuo.Assistant
		}
	}
	m.Entry.Role = role
	m.repair(continuo.RuleUnknownRole, "The role %q became %s.", name, role)
}

// Kind names a JSON value's type in messages.
func Kind(raw json.RawMessage) string {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 {
		return "nothing"
	}
	switch trimmed[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// SameJSON compares values, not spellings; numbers are equal when they are written equally.
func SameJSON(a, b json.RawMessage) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if textA, ok := rawjson.String(a); ok {
		textB, ok := rawjson.String(b)
		return ok && textA == textB
	}
	if string(a) == string(b) {
		return true
	}
	valueA, errA := decodeJSON(a)
	valueB, errB := decodeJSON(b)
	return errA == nil && errB == nil && reflect.DeepEqual(valueA, valueB)
}

func decodeJSON(raw json.RawMessage) (value any, err error) {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// withoutMarks returns a block without cache_control, in the blocks of its content too; the same bytes where it has
// none.
func withoutMarks(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"cache_control"`)) {
		return raw
	}
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return raw
	}
	object = object.Without("cache_control")
	var inner []json.RawMessage
	if content := object.Get("content"); content != nil && json.Unmarshal(content, &inner) == nil {
		inner = slices.Clone(inner)
		for i := range inner {
			inner[i] = withoutMarks(inner[i])
		}
		object.Set("content", rawjson.MustMarshal(inner))
	}
	return object.Raw()
}
