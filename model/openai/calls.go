package openai

import (
	"encoding/json"
	"slices"

	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/fragment"
)

// calls distinguishes the calls of one message, even if a server gives them all the same index, or none.
type calls struct {
	all []*call
	ids model.CallIDs
}

// call is one call, possibly incomplete. It is yielded once its name is known.
type call struct {
	index     int // the delta's, from 0 without a gap
	wireIndex int // the server's, -1 for none
	wireID    string
	id        string
	kind      string
	name      string
	arguments []byte // received so far; given of them are already yielded
	given     int
	begun     bool
	extra     fragment.Object
}

// add adds a piece of a call and returns the delta to yield, nil for none yet.
func (c *calls) add(piece openaichat.ToolCall) *model.ToolCallDelta {
	name, arguments := "", ""
	kind := "function"
	switch {
	case piece.Custom != nil:
		kind, name, arguments = "custom", piece.Custom.Name, string(piece.Custom.Input)
	case piece.Function != nil:
		name, arguments = piece.Function.Name, string(piece.Function.Arguments)
	}
	target := c.find(piece, name, arguments)
	if target == nil {
		target = c.open(piece)
	}
	if target.name == "" {
		target.kind, target.name = kind, name
	}
	target.arguments = append(target.arguments, arguments...)
	target.extra.Add(piece.Extra)
	if target.name == "" {
		return nil
	}
	if !target.begun {
		return target.begin()
	}
	delta := &model.ToolCallDelta{Index: target.index, Arguments: target.newArguments()}
	if len(piece.Extra) > 0 {
		delta.Extra = target.extra.Raw()
	}
	if delta.Arguments == "" && delta.Extra == nil {
		return nil
	}
	return delta
}

// find returns the call that a piece continues, nil when it begins a new one.
func (c *calls) find(piece openaichat.ToolCall, name, arguments string) *call {
	var target *call
	for _, call := range slices.Backward(c.all) {
		switch {
		case piece.Index != nil && call.wireIndex == *piece.Index,
			piece.Index == nil && piece.ID != "" && call.wireID == piece.ID,
			piece.Index == nil && piece.ID == "" && name == "":
			target = call
		}
		if target != nil {
			break
		}
	}
	switch {
	case target == nil:
		return nil
	case piece.ID != "" && target.wireID != "" && piece.ID != target.wireID:
		return nil // all calls have the same index and differ in their ids
	case name != "" && arguments != "" && target.name != "" && piece.ID == "" && json.Valid(target.arguments):
		return nil // all calls have the same index, and each is complete
	}
	return target
}

func (c *calls) open(piece openaichat.ToolCall) *call {
	opened := &call{index: len(c.all), wireIndex: -1, wireID: piece.ID}
	if piece.Index != nil {
		opened.wireIndex = *piece.Index
	}
	opened.id = c.ids.Take(piece.ID, opened.index)
	c.all = append(c.all, opened)
	return opened
}

// begin returns the call's first delta, with everything received.
func (c *call) begin() *model.ToolCallDelta {
	c.begun = true
	return &model.ToolCallDelta{
		Index: c.index, ID: c.id, Type: c.kind, Name: c.name, Arguments: c.newArguments(), Extra: c.extra.Raw(),
	}
}

func (c *call) newArguments() string {
	text := string(c.arguments[c.given:])
	c.given = len(c.arguments)
	return text
}
