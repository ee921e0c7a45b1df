package model

import "fmt"

// CallIDs assigns distinct ids to the calls of one answer, always the same ones for the same answer.
type CallIDs map[string]bool

// Take returns the provider's id, or "call_" and the call's index without one, with "_2", "_3" and so on
// appended when an earlier call of the answer has the same id.
func (c CallIDs) Take(id string, index int) string {
	if id == "" {
		id = fmt.Sprintf("call_%d", index)
	}
	for base, n := id, 2; c[id]; n++ {
		id = fmt.Sprintf("%s_%d", base, n)
	}
	c[id] = true
	return id
}
