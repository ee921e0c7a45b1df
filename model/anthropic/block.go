package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model/internal/fragment"
)

// block is one content block, possibly incomplete.
type block struct {
	kind   string
	start  rawjson.Object // the block's initial object
	closed bool
	gap    string // separator to yield before its first text
	call   int    // index of a tool_use among the calls

	texts     map[string][]byte // members whose text is extended
	input     []byte            // the JSON of a tool's input
	citations []json.RawMessage
	unknown   fragment.Object
}

func newBlock(raw json.RawMessage) (*block, error) {
	start, err := rawjson.ParseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("content block: %w", err)
	}
	kind, ok := rawjson.String(start.Get("type"))
	if !ok {
		return nil, fmt.Errorf("a content block without a type")
	}
	return &block{kind: kind, start: start, texts: map[string][]byte{}}, nil
}

// text returns a string member with its added deltas.
func (b *block) text(member string) string {
	text, _ := rawjson.String(b.start.Get(member))
	return text + string(b.texts[member])
}

func (b *block) append(member, text string) { b.texts[member] = append(b.texts[member], text...) }

func (b *block) addCitation(citation json.RawMessage) { b.citations = append(b.citations, citation) }

// addUnknown merges the members of a delta of an unknown type into the block.
func (b *block) addUnknown(delta json.RawMessage) error {
	members, err := rawjson.ParseObject(delta)
	if err != nil {
		return err
	}
	b.unknown.Add(members.Without("type"))
	return nil
}

// raw writes the block in its unstreamed form.
func (b *block) raw() json.RawMessage {
	object := append(rawjson.Object{}, b.start...)
	for _, member := range []string{"text", "thinking", "signature"} {
		if b.texts[member] != nil {
			object.Set(member, rawjson.MustMarshal(b.text(member)))
		}
	}
	if len(b.input) > 0 {
		object.Set("input", b.inputObject())
	}
	if len(b.citations) > 0 {
		var before []json.RawMessage
		_ = json.Unmarshal(object.Get("citations"), &before) // null or a list
		object.Set("citations", rawjson.MustMarshal(append(before, b.citations...)))
	}
	if unknown, err := rawjson.ParseObject(b.unknown.Raw()); err == nil {
		for _, member := range unknown {
			object.Set(member.Key, member.Value)
		}
	}
	return object.Raw()
}

// inputObject returns a tool's input, which must be an object when it is sent back.
func (b *block) inputObject() json.RawMessage {
	if _, err := rawjson.ParseObject(b.input); err == nil {
		return b.input
	}
	return rawjson.MustMarshal(map[string]string{"INVALID_JSON": string(b.input)})
}

// isPlain reports whether the block is text or a call with only the standard members.
func (b *block) isPlain() bool {
	if b.citations != nil || b.unknown.Raw() != nil {
		return false
	}
	for _, member := range b.start {
		switch {
		case member.Key == "type":
		case b.kind == "text" && (member.Key == "text" || member.Key == "citations" && rawjson.IsNull(member.Value)):
		case b.kind == "tool_use" && (member.Key == "id" || member.Key == "name" || member.Key == "input"):
		default:
			return false
		}
	}
	return b.kind == "text" || b.kind == "tool_use"
}
