package tool

import continuo "github.com/continuo-log/continuo"

// Situation is the part of a request that decides whether a tool is useful for it.
type Situation struct {
	Conversation continuo.Conversation
	// Partial says that the request leaves out or shortens something of the conversation.
	Partial bool
}

// Situational is a Tool that is useful only in some situations. A request offers it only in those.
type Situational interface {
	Useful(Situation) bool
}

// IsUseful reports whether a tool is useful in a situation. A tool that is not Situational always is.
func IsUseful(t Tool, s Situation) bool {
	situational, ok := t.(Situational)
	return !ok || situational.Useful(s)
}

// Useful returns the tools that are useful in a situation, in their order.
func (s Set) Useful(situation Situation) Set {
	var useful Set
	for _, tool := range s {
		if IsUseful(tool, situation) {
			useful = append(useful, tool)
		}
	}
	return useful
}
