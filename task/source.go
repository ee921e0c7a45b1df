package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Source names the entries of the log that a task's history is made of. In JSON it is the id of the
// conversation, or an object with the range; the range counts entries by their seq, both ends included.
type Source struct {
	ConversationID string `json:"conversation_id"`
	From           int64  `json:"from,omitempty"` // default: the first entry
	To             int64  `json:"to,omitempty"`   // default: the newest entry
}

// conversationPrefix begins the ids of conversations.
const conversationPrefix = "conv_"

const historyField = "conversation_history"

// errNotAList is what every history is refused with that is neither messages nor the name of a conversation.
func errNotAList() *ValidationError {
	return refuse(TypeError, historyField, "conversation_history must be a list of message dicts")
}

// sourceOf reads a history that names a conversation; nil when it is a list of messages, or nothing.
func sourceOf(raw json.RawMessage) (*Source, error) {
	switch kindOf(raw) {
	case "list", "NoneType":
		return nil, nil
	case "str":
		id, ok := rawjson.String(raw)
		switch {
		case !ok:
			return nil, errNotAList()
		case id != "" && !isConversationID(id):
			err := errNotAList()
			err.Message += fmt.Sprintf(", or the id of a conversation, which begins with %s (not its key): '%s' is neither", conversationPrefix, oneLine(id, 80))
			return nil, err
		case id == "":
			return nil, nil
		}
		return &Source{ConversationID: id}, nil
	case "dict":
		return rangeOf(raw)
	}
	return nil, errNotAList()
}

func isConversationID(id string) bool {
	return strings.HasPrefix(id, conversationPrefix) && len(id) <= 100 && id == label(id, 100)
}

func rangeOf(raw json.RawMessage) (*Source, error) {
	object, err := rawjson.ParseObject(raw)
	id, ok := rawjson.String(object.Get("conversation_id"))
	if err != nil || !ok {
		return nil, errNotAList()
	}
	if !isConversationID(id) {
		return nil, refuse(InvalidValue, historyField+".conversation_id", "conversation_history names the conversation '%s', but ids of conversations begin with %s", oneLine(id, 80), conversationPrefix)
	}
	source := Source{ConversationID: id}
	for name, end := range map[string]*int64{"from": &source.From, "to": &source.To} {
		value := object.Get(name)
		if !rawjson.IsNull(value) && (json.Unmarshal(bytes.TrimSpace(value), end) != nil || *end < 1) {
			return nil, refuse(InvalidValue, historyField+"."+name, "conversation_history has a range whose end '%s' is no seq: it must be a whole number from 1", name)
		}
	}
	if source.To != 0 && source.To < source.From {
		return nil, refuse(InvalidValue, historyField+".to", "conversation_history has a range that ends at %d, before it begins at %d", source.To, source.From)
	}
	return &source, nil
}
