package responses

import (
	"encoding/json"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Output returns the items of an assistant entry as the output of a response, or the list of a conversation's items, has
// them: whole, with a status, and with the ids that [ItemID] makes of the entry's id. Items of the provider's own keep
// everything else. The order is that of the provider's own items, or else reasoning, the message, the calls.
func Output(entry *continuo.Entry, o Options) []json.RawMessage {
	status := StatusCompleted
	if entry.Error != nil {
		status = StatusIncomplete
	}
	items, own := Own(entry, o)
	if !own {
		items = outputItems(entry, status)
	}
	for i, raw := range items {
		object, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		kind, _ := rawjson.String(object.Get("type"))
		whole := rawjson.Object{{Key: "id", Value: rawjson.MustMarshal(ItemID(kind, entry.ID, i))}}
		whole = append(whole, object.Without("id")...)
		if rawjson.IsNull(whole.Get("status")) && kind != TypeReasoning && kind != TypeCompaction {
			whole.Set("status", rawjson.MustMarshal(status))
		}
		items[i] = whole.Raw()
	}
	return items
}

// outputItems writes the items of an entry without items of its own.
func outputItems(entry *continuo.Entry, status string) (items []json.RawMessage) {
	if entry.Reasoning != nil && entry.Reasoning.Text != "" {
		items = append(items, rawjson.MustMarshal(reasoningItem{
			Type: TypeReasoning, Summary: []ContentPart{{Type: "summary_text", Text: entry.Reasoning.Text}},
		}))
	}
	if text := entry.Content.String(); text != "" || len(entry.ToolCalls) == 0 {
		items = append(items, rawjson.MustMarshal(messageItem(text, status)))
	}
	for i := range entry.ToolCalls {
		items = append(items, rawjson.MustMarshal(writtenCall(&entry.ToolCalls[i], status)))
	}
	return items
}

// reasoningItem is reasoning as it is written.
type reasoningItem struct {
	ID      string        `json:"id,omitempty"`
	Type    string        `json:"type"`
	Summary []ContentPart `json:"summary"`
}

// outputMessage is a message of the model as it is written.
type outputMessage struct {
	ID      string       `json:"id,omitempty"`
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []OutputText `json:"content"`
}

// OutputText is a text of the model as it is written.
type OutputText struct {
	Type        string            `json:"type"`
	Text        string            `json:"text"`
	Annotations []json.RawMessage `json:"annotations"`
	Logprobs    []json.RawMessage `json:"logprobs"`
}

func messageItem(text, status string) outputMessage {
	return outputMessage{Type: TypeMessage, Status: status, Role: "assistant", Content: []OutputText{outputText(text)}}
}

func outputText(text string) OutputText {
	return OutputText{Type: "output_text", Text: text, Annotations: []json.RawMessage{}, Logprobs: []json.RawMessage{}}
}

// outputCall is a call as it is written.
type outputCall struct {
	ID string `json:"id,omitempty"`
	call
	Status string `json:"status"`
}

func writtenCall(made *continuo.ToolCall, status string) outputCall {
	item := call{Type: TypeFunctionCall, CallID: made.ID, Name: made.Name, Arguments: &made.Arguments}
	if made.Type == "custom" {
		item.Type, item.Arguments, item.Input = TypeCustomCall, nil, &made.Arguments
	}
	return outputCall{call: item, Status: status}
}

// idPrefixes are the beginnings of the ids of items, by their type; "item_" for every other type.
var idPrefixes = map[string]string{
	TypeMessage: "msg_", TypeFunctionCall: "fc_", TypeFunctionCallOutput: "fco_", TypeCustomCall: "ctc_", TypeCustomCallOutput: "ctco_",
	TypeReasoning: "rs_", TypeCompaction: "cmp_",
}

// entryPrefix is the beginning of the ids of entries.
const entryPrefix = "ent_"

// ItemID returns the id of an item of an entry: it is the same in every process and after an export, and [EntryOf] finds
// the entry by it.
func ItemID(kind, entryID string, index int) string {
	prefix := idPrefixes[kind]
	if prefix == "" {
		prefix = "item_"
	}
	return prefix + strings.TrimPrefix(entryID, entryPrefix) + "_" + strconv.Itoa(index)
}

// EntryOf returns the id of the entry that an item is of, and its index among the entry's items; not ok for an id that
// [ItemID] did not make.
func EntryOf(itemID string) (entryID string, index int, ok bool) {
	_, rest, found := strings.Cut(itemID, "_")
	at := strings.LastIndexByte(rest, '_')
	if !found || at <= 0 {
		return "", 0, false
	}
	index, err := strconv.Atoi(rest[at+1:])
	return entryPrefix + rest[:at], index, err == nil && index >= 0
}

// NewResponse returns a response that has begun, with every member that clients require.
func NewResponse(id, model string, createdAt int64) Response {
	number := func(f float64) *float64 { return &f }
	tier, logprobs := "default", 0
	return Response{
		ID: id, Object: "response", CreatedAt: float64(createdAt), Status: StatusInProgress, Model: model,
		Instructions: json.RawMessage("null"), Output: []json.RawMessage{}, Tools: []json.RawMessage{}, ToolChoice: json.RawMessage(`"auto"`),
		Truncation: "disabled", ParallelToolCalls: true, Text: json.RawMessage(`{"format":{"type":"text"}}`), TopP: number(1),
		PresencePenalty: number(0), FrequencyPenalty: number(0), TopLogprobs: &logprobs, Temperature: number(1),
		Reasoning: json.RawMessage("null"), Store: true, ServiceTier: &tier, Metadata: json.RawMessage("{}"),
	}
}
