package render

import (
	"encoding/json"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// CheckOpenAIChatStrict is CheckOpenAIChat with rule C12, for upstreams whose chat templates are strict
// (Mistral's API, many of vLLM's models): one system message at most and only at the beginning, user and
// assistant alternating, and no user message right after a tool message. [Arrange] turns any list into such a
// list.
func CheckOpenAIChatStrict(messages []json.RawMessage) []Violation {
	f := findings(CheckOpenAIChat(messages))
	before := ""
	for i, raw := range messages {
		m, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		role := stringOf(m.Get("role"))
		switch role {
		case "developer":
			role = "system"
		case "function":
			role = "tool"
		}
		switch {
		case role == "system" && before != "":
			f.hard(i, "C12 late_system", "a system message follows a %s message", before)
			continue // the order of roles is checked as if it were absent
		case role == before && (role == "user" || role == "assistant"):
			f.hard(i, "C12 not_alternating", "two %s messages follow each other", role)
		case role == "user" && before == "tool":
			f.hard(i, "C12 user_after_tool", "a user message follows a tool message")
		case role == "assistant" && (before == "system" || before == ""):
			f.hard(i, "C12 not_alternating", "the first message besides the system message is the assistant's")
		}
		before = role
	}
	return f
}
