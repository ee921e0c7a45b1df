package tool

import continuo "github.com/continuo-log/continuo"

// Situation is what decides whether a tool can do anything for a request.
type Situation struct {
	Conversation continuo.Conversation
	// Partial says that the request leaves out or shortens something of the conversation.
	Partial bool
}

// Situational is a Tool that can do something in some situations only. A request offers it in those.
type Situational interface {
	Useful(Situation) bool
}

// IsUseful reports whether a tool can do anything in a situation. A tool that does not say can.
func IsUseful(t Tool, s Situation) bool {
	situational, ok := t.(Situational)
	return !ok || situational.Useful(s)
}

// Useful returns the tools that can do something in a situation, in their order.
func (s Set) Useful(situation Situation) Set {
	var useful Set
	for _, tool := range s {
		if IsUseful(tool, situation) {
			useful = append(useful, tool)
		}
	}
	return useful
}
