package request

import (
	"encoding/json"
	"slices"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// replaced are the members that a request to a model has of its own: what it is shown, and what only this server reads.
var replaced = map[string]bool{
	"model": true, "stream": true, "stream_options": true, "store": true, "background": true, "conversation": true, "previous_response_id": true,
	"instructions": true, "include": true, "truncation": true, "system": true, "systemInstruction": true, "messages": true, "input": true, "contents": true,
}

// unanswerable are the members that ask for what an answer that is read into the log does not have, by the object that
// they are in.
var unanswerable = map[string][]string{
	"":                 {"n", "logprobs", "top_logprobs", "modalities", "audio", "context_management"},
	"generationConfig": {"candidateCount", "responseModalities", "responseLogprobs", "logprobs"},
}

// Own returns the members that a request in the same protocol has as they came, nil for none, and the names of those that
// it cannot have.
func (r *Request) Own() (own json.RawMessage, omitted []string) {
	members := r.members.own("", r.Fields, &omitted)
	if _, chat := r.members["messages"]; chat && r.members["max_completion_tokens"].as != "" {
		members = members.Without("metadata") // refused without store
	}
	return members.Raw(), omitted
}

func (m members) own(within string, fields rawjson.Object, omitted *[]string) rawjson.Object {
	var own rawjson.Object
	for _, field := range fields {
		name, value := m.canonical(field.Key), field.Value
		if inner, err := rawjson.ParseObject(value); err == nil && unanswerable[name] != nil {
			value = m.own(name, inner, omitted).Raw()
		}
		path := name
		if within != "" {
			path = within + "." + name
		}
		switch {
		case within == "" && name == "system" && isList(value): // with the client's cache marks
			own.Set(name, value)
		case rawjson.IsNull(value), within == "" && replaced[name]:
		case !slices.Contains(unanswerable[within], name):
			own.Set(name, value)
		case string(rawjson.MustMarshal(value)) != m[path].usual:
			*omitted = append(*omitted, path)
		}
	}
	return own
}

func isList(value json.RawMessage) bool {
	var list []json.RawMessage
	return json.Unmarshal(value, &list) == nil && len(list) > 0
}

// ReadResponsesMembers reads the members of a Responses request except for its input. Its error is an *Error.
func ReadResponsesMembers(body []byte) (*Request, error) {
	r, _, err := begin(body, "input")
	if err != nil {
		return nil, err
	}
	r.members = responsesMembers
	return r, r.readResponsesTools()
}
