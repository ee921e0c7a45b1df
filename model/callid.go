package model

import "fmt"

// CallIDs gives the calls of one answer ids that differ, the same ones for the same answer.
type CallIDs map[string]bool

// Take returns the id that the provider gave, "call_" and the call's index when it gave none, with "_2",
// "_3" and so on behind it when an earlier call of the answer has it already.
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
