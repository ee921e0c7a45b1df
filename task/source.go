package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Source names the entries of the log that a task's history is made from. In a request it is the id or the key of the
// conversation, or an object with the range; the range counts entries by their seq, both ends included. A stored one
// has the id and both ends, unless the conversation was empty.
type Source struct {
	ConversationID string `json:"conversation_id"`            // a request may give the key instead
	From           int64  `json:"from,omitempty" minimum:"1"` // default in a request: the first entry
	To             int64  `json:"to,omitempty" minimum:"1"`   // default in a request: the newest entry
}

// maxSource is the most entries of a conversation, the newest, that are read for a history.
const maxSource = 5000

// sourceRead is how far Read got in a range of entries.
type sourceRead struct {
	asked Source // the requested range
	from  int64  // the first entry of the draft's messages
	more  bool   // there was a message before them; reading ended there
}

// Read makes the messages from entries of the log, and narrows Task.Source, whose both ends the caller has set, to
// those that the history is made from. The entries come from the end of the range backward. Without relevance it stops
// as soon as there are as many messages as are kept, and with it at the beginning; in either case after 5 000 entries.
func (d *Draft) Read(backward iter.Seq2[continuo.Entry, error]) error {
	source, most := d.Task.Source, d.limits.orDefaults().MaxMessages
	read := sourceRead{asked: *source, from: source.From}
	var unit []continuo.Entry // an entry with the results that follow it
	var shown [][]Message     // of each unit, the newest first
	entries, messages := 0, 0
	for entry, err := range backward {
		if err != nil {
			return err
		}
		entries++
		unit = append(unit, entry)
		last := entry.Seq == source.From || entries == maxSource
		if !last && (entry.Hidden || entry.Role == continuo.Tool) {
			continue
		}
		slices.Reverse(unit)
		found := FromEntries(unit)
		if read.more = d.Relevance == nil && messages >= most && len(found) > 0; read.more {
			break
		}
		shown, messages = append(shown, found), messages+len(found)
		if read.from, unit = entry.Seq, nil; last {
			break
		}
	}
	slices.Reverse(shown)
	d.Messages, d.read, source.From = slices.Concat(shown...), read, read.from
	return nil
}

// warnings describe what Read left out: one, or none.
func (r *sourceRead) warnings(most int) []Warning {
	entries := r.asked.To - r.asked.From + 1
	switch {
	case r.more:
		return []Warning{{
			Severity:   Medium,
			Message:    fmt.Sprintf("conversation_history has more than %d messages in %d entries, truncating to most recent %d", most, entries, most),
			Suggestion: "Consider a range of entries (from, to) that holds what matters, or relevance",
		}}
	case r.from > r.asked.From:
		return []Warning{{
			Severity:   Medium,
			Message:    fmt.Sprintf("conversation_history has %d entries, of which only the newest %d were looked at, not entries %d to %d", entries, maxSource, r.asked.From, r.from-1),
			Suggestion: "Consider a range of entries (from, to) that holds what matters",
		}}
	}
	return nil
}

const historyField = "conversation_history"

// errNotAList is the error for a history that is neither messages nor the name of a conversation.
func errNotAList() *ValidationError {
	return refuse(TypeError, historyField, "conversation_history must be a list of message dicts")
}

// sourceOf reads a history that names a conversation; nil for a list of messages, or no history.
func sourceOf(raw json.RawMessage) (*Source, error) {
	switch kindOf(raw) {
	case "list", "NoneType":
		return nil, nil
	case "str":
		id, ok := rawjson.String(raw)
		switch {
		case !ok:
			return nil, errNotAList()
		case id == "":
			return nil, nil
		case !isConversationName(id):
			err := errNotAList()
			err.Message += fmt.Sprintf(", or the id or key of a conversation: '%s' is neither", oneLine(id, 80))
			return nil, err
		}
		return &Source{ConversationID: id}, nil
	case "dict":
		return rangeOf(raw)
	}
	return nil, errNotAList()
}

// isConversationName reports whether a text can be an id or a key.
func isConversationName(text string) bool {
	return text == label(text, maxConversationName) && !strings.ContainsFunc(text, unicode.IsSpace)
}

// maxConversationName is how many characters an id or a key has at most.
const maxConversationName = 128

func rangeOf(raw json.RawMessage) (*Source, error) {
	object, err := rawjson.ParseObject(raw)
	id, ok := rawjson.String(object.Get("conversation_id"))
	if err != nil || !ok {
		return nil, errNotAList()
	}
	if id == "" || !isConversationName(id) {
		return nil, refuse(InvalidValue, historyField+".conversation_id", "conversation_history names the conversation '%s', which is neither an id nor a key", oneLine(id, 80))
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
