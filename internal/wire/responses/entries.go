package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Entries returns the entries of a list of items, such as a client's input. Items that the model made and that follow
// each other are one assistant entry; results of calls become tool entries in the order of the items. An item that the
// entries do not represent is kept as vendor data, so that [Items] with the same options returns the items as they
// came. An item_reference is an error: the caller resolves it before.
//
// The log's own rules (a result for each call, in their place) are not checked here.
//
// At says for each item which of the entries it is part of.
func Entries(raws []json.RawMessage, o Options) (entries []continuo.Entry, at []int, err error) {
	var round []Item
	flush := func() error {
		if len(round) == 0 {
			return nil
		}
		entry, err := keep(round, o)
		entries, round = append(entries, entry), nil
		return err
	}
	for i, raw := range raws {
		item, err := ParseItem(raw)
		if err == nil && item.Type == TypeItemReference {
			err = fmt.Errorf("%w: the item %q is only referred to", continuo.ErrInvalid, item.ID)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("input[%d]: %w", i, err)
		}
		if item.IsModels() {
			round = append(round, item)
			at = append(at, len(entries))
			continue
		}
		if err := flush(); err != nil {
			return nil, nil, fmt.Errorf("input[%d]: %w", i-1, err)
		}
		entry, err := keep([]Item{item}, o)
		if err != nil {
			return nil, nil, fmt.Errorf("input[%d]: %w", i, err)
		}
		at = append(at, len(entries))
		entries = append(entries, entry)
	}
	if err := flush(); err != nil {
		return nil, nil, fmt.Errorf("input[%d]: %w", len(raws)-1, err)
	}
	return entries, at, nil
}

// keep makes an entry, with the items as vendor data where the entry alone would not give them back.
func keep(items []Item, o Options) (continuo.Entry, error) {
	entry, err := entryOf(items)
	if err != nil || o.Provider == "" {
		return entry, err
	}
	answered := continuo.ToolCall{}
	if items[0].Type == TypeCustomCallOutput {
		answered.Type = "custom"
	}
	if !sameItems(Items(&entry, answered, Options{}), items) {
		entry.Vendor = map[string]json.RawMessage{o.Provider: Vendor(raws(items))}
	}
	return entry, nil
}

func sameItems(written []json.RawMessage, items []Item) bool {
	if len(written) != len(items) {
		return false
	}
	for i, raw := range written {
		if !bytes.Equal(raw, rawjson.MustMarshal(items[i].Raw)) {
			return false
		}
	}
	return true
}

func raws(items []Item) []json.RawMessage {
	list := make([]json.RawMessage, len(items))
	for i, item := range items {
		list[i] = item.Raw
	}
	return list
}

// Vendor returns the vendor data that keep items.
func Vendor(items []json.RawMessage) json.RawMessage {
	return rawjson.MustMarshal(rawjson.Object{{Key: VendorItems, Value: rawjson.MustMarshal(items)}})
}

// entryOf returns the entry of the items of one round, or of one item of the client, without vendor data.
func entryOf(items []Item) (continuo.Entry, error) {
	first := items[0]
	switch {
	case first.IsModels():
		return assistantOf(items), nil
	case first.IsOutput():
		content, err := contentOf(first.Output)
		if first.Output == nil {
			content = continuo.Text(string(rawjson.MustMarshal(first.Raw)))
		}
		return continuo.Entry{Role: continuo.Tool, ToolCallID: first.CallID, Content: content}, err
	case first.Type != TypeMessage:
		content := continuo.Parts(continuo.Part{Type: first.Type, Raw: rawjson.MustMarshal(first.Raw)})
		return continuo.Entry{Role: continuo.User, Content: content}, nil
	}
	content, err := contentOf(first.Content)
	if err != nil {
		return continuo.Entry{}, err
	}
	switch first.Role {
	case "user":
		return continuo.Entry{Role: continuo.User, Content: content}, nil
	case "system", "developer":
		return continuo.Entry{Role: continuo.System, Content: content}, nil
	}
	return continuo.Entry{}, fmt.Errorf("%w: a message of the role %q; allowed: user, assistant, system, developer", continuo.ErrInvalid, first.Role)
}

// assistantOf returns the entry of a round.
func assistantOf(items []Item) continuo.Entry {
	entry := continuo.Entry{Role: continuo.Assistant}
	var texts, thoughts []string
	for _, item := range items {
		switch item.Type {
		case TypeMessage:
			texts = append(texts, nonEmpty(item.Parts()...)...)
		case TypeReasoning:
			thoughts = append(thoughts, nonEmpty(item.ReasoningParts()...)...)
		default:
			if call, ok := item.Call(); ok && !hasOutput(items, item.CallID) {
				entry.ToolCalls = append(entry.ToolCalls, call)
			}
		}
	}
	entry.Content = continuo.Text(strings.Join(texts, gap))
	if len(texts) == 0 && len(entry.ToolCalls) > 0 {
		entry.Content = continuo.Null()
	}
	if len(thoughts) > 0 {
		entry.Reasoning = &continuo.Reasoning{Text: strings.Join(thoughts, gap)}
	}
	return entry
}

// hasOutput reports whether a round has the result of one of its calls: the provider ran it.
func hasOutput(items []Item, callID string) bool {
	for _, item := range items {
		if item.CallID == callID && item.IsOutput() {
			return true
		}
	}
	return false
}
