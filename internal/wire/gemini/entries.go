package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// typeOfPart is the type of a part of this API in an entry's content, {"type": "gemini_part", "part": part}: of one that
// chat completions do not have.
const typeOfPart = "gemini_part"

// Entries returns the entries of contents, such as those of a client's request. A content of the model is one assistant
// entry; in a content of a user, each functionResponse is a tool entry, and parts of other kinds that follow each other
// are one user entry. What the entries do not represent is kept as vendor data, so that [Contents] with the same options
// returns the contents as they came.
//
// The log's own rules (a result for each call, in their place) are not checked here. A response to no call has its name
// as ToolCallID.
//
// At says for each content which of the entries is its first one.
func Entries(contents []Content, o Options) (entries []continuo.Entry, at []int, err error) {
	var open []openCall
	for i, content := range contents {
		parts, err := parse(content.Parts)
		if err != nil {
			return nil, nil, fmt.Errorf("contents[%d]: %w", i, err)
		}
		at = append(at, len(entries))
		switch content.Role {
		case "model":
			entry := keep(assistantOf(parts), parts, Answered{}, false, false, o)
			entries, open = append(entries, entry), openCalls(&entry, parts)
		case "user", "", "function":
			read, err := userEntries(parts, &open, afterResult(entries), o)
			if err != nil {
				return nil, nil, fmt.Errorf("contents[%d]: %w", i, err)
			}
			entries = append(entries, read...)
		default:
			return nil, nil, fmt.Errorf("contents[%d]: %w: the role is %q; allowed: user, model", i, continuo.ErrInvalid, content.Role)
		}
	}
	return entries, at, nil
}

// Contents returns the contents of entries, each as it came. It is the reverse of [Entries]; a request needs more care,
// which package render takes.
func Contents(entries []continuo.Entry, o Options) (contents []Content) {
	calls := map[string]Answered{}
	for i := range entries {
		entry := &entries[i]
		role := "user"
		if entry.Role == continuo.Assistant {
			role, calls = "model", Calls(entry, o)
		}
		parts := Parts(entry, calls[entry.ToolCallID], o)
		if parts == nil {
			parts = []json.RawMessage{}
		}
		if len(contents) > 0 && Joined(entries[:i+1], o) {
			last := &contents[len(contents)-1]
			last.Parts = append(last.Parts, parts...)
			continue
		}
		contents = append(contents, Content{Role: role, Parts: parts})
	}
	return contents
}

// Joined reports whether the parts of the last entry belong to the content of the entry before.
func Joined(entries []continuo.Entry, o Options) bool {
	last := entries[len(entries)-1]
	vendor, err := rawjson.ParseObject(last.Vendor[o.Provider])
	if joined := vendor.Get(VendorJoined); err == nil && joined != nil {
		return string(joined) == "true"
	}
	return last.Role == continuo.Tool && afterResult(entries[:len(entries)-1])
}

// openCall is a call without a result.
type openCall struct {
	id, wireID, name string
}

func openCalls(entry *continuo.Entry, parts []Part) (open []openCall) {
	n := 0
	for _, part := range parts {
		if part.Call != nil {
			open = append(open, openCall{id: entry.ToolCalls[n].ID, wireID: part.Call.ID, name: part.Call.Name})
			n++
		}
	}
	return open
}

// take returns the id of the call that a response answers: by its id, or else the first one of its name.
func take(open *[]openCall, response *FunctionResponse) (id string, answered Answered) {
	found := -1
	for i, call := range *open {
		if response.ID != "" && call.wireID == response.ID {
			found = i
			break
		}
		if found < 0 && call.name == response.Name && (response.ID == "" || call.wireID == "") {
			found = i
		}
	}
	if found < 0 {
		if response.ID != "" {
			return response.ID, Answered{}
		}
		return response.Name, Answered{}
	}
	call := (*open)[found]
	*open = append((*open)[:found:found], (*open)[found+1:]...)
	return call.id, Answered{Name: call.name, ID: call.wireID}
}

// userEntries reads a content of a user.
func userEntries(parts []Part, open *[]openCall, after bool, o Options) (entries []continuo.Entry, err error) {
	for i := 0; i < len(parts); {
		joined := i > 0
		if joined {
			after = afterResult(entries)
		}
		if parts[i].Response != nil {
			entry := resultOf(parts[i])
			var answered Answered
			entry.ToolCallID, answered = take(open, parts[i].Response)
			entries = append(entries, keep(entry, parts[i:i+1], answered, joined, after, o))
			i++
			continue
		}
		end := i
		for end < len(parts) && parts[end].Response == nil {
			end++
		}
		entry, err := userOf(parts[i:end])
		if err != nil {
			return nil, err
		}
		entries = append(entries, keep(entry, parts[i:end], Answered{}, joined, false, o))
		i = end
	}
	if len(parts) == 0 {
		entries = append(entries, keep(continuo.Entry{Role: continuo.User, Content: continuo.Text("")}, nil, Answered{}, false, false, o))
	}
	return entries, nil
}

// afterResult reports whether the last entry is a result.
func afterResult(entries []continuo.Entry) bool {
	return len(entries) > 0 && entries[len(entries)-1].Role == continuo.Tool
}

// keep adds the parts to an entry as vendor data where the entry alone would not give them back, and whether they are in
// the content of the entry before where that is not usual: only results that follow each other are in one content.
func keep(entry continuo.Entry, parts []Part, answered Answered, joined, usual bool, o Options) continuo.Entry {
	if o.Provider == "" {
		return entry
	}
	var vendor rawjson.Object
	written := Parts(&entry, answered, Options{})
	same := len(written) == len(parts)
	for i := 0; same && i < len(parts); i++ {
		same = bytes.Equal(written[i], rawjson.MustMarshal(parts[i].Raw))
	}
	if !same {
		vendor.Set(VendorParts, rawjson.MustMarshal(raws(parts)))
	}
	if joined != usual {
		vendor.Set(VendorJoined, rawjson.MustMarshal(joined))
	}
	if len(vendor) > 0 {
		entry.Vendor = map[string]json.RawMessage{o.Provider: vendor.Raw()}
	}
	return entry
}

func raws(parts []Part) []json.RawMessage {
	list := make([]json.RawMessage, len(parts))
	for i, part := range parts {
		list[i] = part.Raw
	}
	return list
}

// assistantOf returns the entry of a content of the model, without vendor data.
func assistantOf(parts []Part) continuo.Entry {
	entry := continuo.Entry{Role: continuo.Assistant}
	var texts Texts
	text, reasoning := "", ""
	taken := map[string]bool{}
	for _, part := range parts {
		moreText, moreReasoning := texts.Add(part)
		text, reasoning = text+moreText, reasoning+moreReasoning
		if part.Call != nil {
			arguments := string(part.Call.Args)
			if rawjson.IsNull(part.Call.Args) {
				arguments = "{}"
			}
			id := callID(part.Call.ID, len(entry.ToolCalls), taken)
			entry.ToolCalls = append(entry.ToolCalls, continuo.FunctionCall(id, part.Call.Name, arguments))
		}
	}
	entry.Content = continuo.Text(text)
	if text == "" && len(entry.ToolCalls) > 0 {
		entry.Content = continuo.Null()
	}
	if reasoning != "" {
		entry.Reasoning = &continuo.Reasoning{Text: reasoning}
	}
	return entry
}

// resultOf returns the entry of a functionResponse, without its call's id.
func resultOf(part Part) continuo.Entry {
	entry := continuo.Entry{Role: continuo.Tool, Content: continuo.Text(string(part.Response.Response))}
	object, err := rawjson.ParseObject(part.Response.Response)
	if err != nil || len(object) != 1 {
		return entry
	}
	for _, key := range []string{"output", "error"} {
		if text, ok := rawjson.String(object.Get(key)); ok {
			entry.Content = continuo.Text(text)
			if key == "error" {
				entry.PartType = continuo.PartToolError
			}
		}
	}
	return entry
}

// userOf returns the entry of parts of a user. Inline data become parts of chat completions.
func userOf(parts []Part) (continuo.Entry, error) {
	entry := continuo.Entry{Role: continuo.User}
	if len(parts) == 1 && parts[0].HasText {
		entry.Content = continuo.Text(parts[0].Text)
		return entry, nil
	}
	list := make([]json.RawMessage, len(parts))
	for i, part := range parts {
		list[i] = chatPart(part)
	}
	err := entry.Content.UnmarshalJSON(rawjson.MustMarshal(list))
	return entry, err
}

// chatPart is a part in the form of chat completions; one that they do not have is in a part of its own type.
func chatPart(part Part) json.RawMessage {
	object, _ := rawjson.ParseObject(part.Raw)
	if part.HasText {
		return continuo.TextPart(part.Text).Raw
	}
	var data struct {
		MimeType  string `json:"mimeType"`
		SnakeType string `json:"mime_type"`
		Data      string `json:"data"`
	}
	if json.Unmarshal(member(object, "inlineData", "inline_data"), &data) == nil && data.Data != "" {
		url := "data:" + data.MimeType + data.SnakeType + ";base64," + data.Data
		kind, inner := "file", rawjson.Object{{Key: "file_data", Value: rawjson.MustMarshal(url)}}
		if bytes.HasPrefix([]byte(data.MimeType+data.SnakeType), []byte("image/")) {
			kind, inner = "image_url", rawjson.Object{{Key: "url", Value: rawjson.MustMarshal(url)}}
		}
		return rawjson.MustMarshal(rawjson.Object{{Key: "type", Value: rawjson.MustMarshal(kind)}, {Key: kind, Value: inner.Raw()}})
	}
	return rawjson.MustMarshal(rawjson.Object{
		{Key: "type", Value: rawjson.MustMarshal(typeOfPart)}, {Key: "part", Value: part.Raw},
	})
}
