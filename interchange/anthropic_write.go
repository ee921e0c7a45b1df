package interchange

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// encode writes the message that consists of some entries.
func (anthropic) encode(parts []*draft) rawjson.Object {
	e := &parts[0].entry
	role := e.Role
	if role == continuo.Tool {
		role = continuo.User
	}
	message := rawjson.Object{{Key: "role", Value: rawjson.MustMarshal(role)}}
	if len(parts) == 1 && writesString(parts[0]) {
		message.Set("content", rawjson.MustMarshal(e.Content.String()))
	} else {
		message.Set("content", rawjson.MustMarshal(joinBlocks(parts)))
	}
	for _, d := range parts {
		extra, err := rawjson.ParseObject(d.entry.Extra)
		if err != nil {
			continue
		}
		if d.isTool() {
			extra = extra.Without("is_error") // it belongs to the block
		}
		for _, field := range extra {
			message.Set(field.Key, field.Value)
		}
	}
	return message
}

// writesString reports whether the content is a plain string: a user's text, or an assistant's that was one.
func writesString(d *draft) bool {
	e := &d.entry
	if e.Role == continuo.Tool || !e.Content.IsText() || e.HasCalls() || e.Vendor[vendorKey] != nil {
		return false
	}
	return e.Role != continuo.Assistant || d.record.String
}

// joinBlocks puts the blocks of several entries in their order in the message; those with an unknown position
// come last.
func joinBlocks(parts []*draft) []json.RawMessage {
	type positioned struct {
		position int
		raw      json.RawMessage
	}
	var all []positioned
	for _, d := range parts {
		for i, raw := range blocksOf(d) {
			position := math.MaxInt
			if i < len(d.record.Blocks) {
				position = d.record.Blocks[i]
			}
			all = append(all, positioned{position, raw})
		}
	}
	slices.SortStableFunc(all, func(a, b positioned) int { return cmp.Compare(a.position, b.position) })
	blocks := make([]json.RawMessage, len(all))
	for i := range all {
		blocks[i] = all[i].raw
	}
	return blocks
}

// blocksOf returns the blocks of one entry, in their original form if known.
func blocksOf(d *draft) []json.RawMessage {
	if d.record.Raw != nil {
		return d.record.Raw
	}
	var kept struct {
		Content []json.RawMessage `json:"content"`
		Block   json.RawMessage   `json:"block"`
	}
	if raw := d.entry.Vendor[vendorKey]; raw != nil && json.Unmarshal(raw, &kept) == nil {
		switch {
		case kept.Block != nil && d.isTool():
			return []json.RawMessage{kept.Block}
		case kept.Content != nil:
			return kept.Content
		}
	}
	return messages.PlainBlocks(&d.entry)
}
