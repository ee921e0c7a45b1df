package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
	wire "github.com/continuo-log/continuo/internal/wire/responses"
)

// item is one item of the output, possibly incomplete.
type item struct {
	wire.Item
	index     int
	done      bool
	call      int            // index among the calls, -1 for none
	arguments int            // bytes of the arguments that are yielded
	summary   bool           // the reasoning has a summary
	texts     map[int][]byte // by part: the text that is yielded
}

// streams reports whether the item is a call whose arguments arrive in pieces.
func (i *item) streams() bool {
	return i.Type == wire.TypeFunctionCall || i.Type == wire.TypeCustomCall
}

// yielded returns how many bytes of a part are yielded.
func (i *item) yielded(part int) int {
	if i.texts == nil {
		i.texts = map[int][]byte{}
	}
	return len(i.texts[part])
}

// rest returns what the final text of a part adds to the yielded text.
func (i *item) rest(part int, final string) string {
	if i.yielded(part) == 0 {
		return final
	}
	rest, _ := strings.CutPrefix(final, string(i.texts[part]))
	if len(rest) == len(final) {
		return "" // the server changed the text; the items keep its final form
	}
	return rest
}

// soFar returns the item as received, nil when nothing of it can be sent back: an item without an end other than a
// message with text.
func (i *item) soFar() json.RawMessage {
	if i.done {
		return i.Raw
	}
	if i.Type != wire.TypeMessage || len(i.texts) == 0 {
		return nil
	}
	indexes := make([]int, 0, len(i.texts))
	for part := range i.texts {
		indexes = append(indexes, part)
	}
	slices.Sort(indexes)
	parts := make([]wire.ContentPart, len(indexes))
	for n, part := range indexes {
		parts[n] = wire.ContentPart{Type: "output_text", Text: string(i.texts[part]), Annotations: json.RawMessage(`[]`)}
	}
	object, err := rawjson.ParseObject(i.Raw)
	if err != nil {
		return nil
	}
	object.Set("content", rawjson.MustMarshal(parts))
	object.Set("status", rawjson.MustMarshal(wire.StatusIncomplete))
	return object.Raw()
}
