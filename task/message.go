package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Role says who speaks in a message of a history.
type Role string

// The roles of a history that a caller may give.
const (
	User         Role = "user"
	Assistant    Role = "assistant"
	Orchestrator Role = "orchestrator"
)

// Message is a complete message of a history.
type Message struct {
	Role        Role
	Content     string
	Timestamp   string // RFC 3339, or what the caller wrote
	Attachments []Attachment
}

// maxTimestamp is the characters of a timestamp that are kept.
const maxTimestamp = 64

// timestampOf formats a time as a message's timestamp.
func timestampOf(t time.Time) string {
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}

// readMessages reads the caller's messages: all of them, or the newest that the limits allow.
func readMessages(raw json.RawMessage, all bool, now time.Time, limits Limits) ([]Message, []Warning, error) {
	if kindOf(raw) != "list" {
		return nil, nil, nil // no history; other values have been refused
	}
	if len(raw) > limits.MaxBytes {
		return nil, nil, refuse(InvalidValue, historyField, "conversation_history has %d bytes, at most %d are allowed", len(raw), limits.MaxBytes)
	}
	list, err := rawjson.ParseList(raw)
	if err != nil {
		return nil, nil, errNotAList()
	}
	var warnings []Warning
	first := max(len(list)-limits.MaxMessages, 0)
	if all {
		first = 0
	}
	if first > 0 {
		warnings = append(warnings, tooManyMessages(len(list), limits.MaxMessages))
	}
	var messages []Message
	unreadable, example := 0, 0
	for i := first; i < len(list); i++ {
		message, err := readMessage(list[i], i, now, limits)
		if err != nil {
			return nil, nil, err
		}
		if _, ok := instantOf(message.Timestamp); !ok {
			if unreadable++; unreadable == 1 {
				example = i
			}
		}
		messages = append(messages, message)
	}
	if unreadable > 0 {
		warnings = append(warnings, unreadableTimestamps(unreadable, messages[example-first].Timestamp, example))
	}
	return messages, warnings, nil
}

func readMessage(raw json.RawMessage, index int, now time.Time, limits Limits) (Message, error) {
	fail := func(kind ErrorType, field, format string, args ...any) (Message, error) {
		path := fmt.Sprintf("%s[%d]%s", historyField, index, field)
		return Message{}, refuseAt(index, kind, path, "Message at index %d %s", index, fmt.Sprintf(format, args...))
	}
	object, err := rawjson.ParseValidObject(raw)
	if err != nil {
		return fail(TypeError, "", "must be a dict, got %s", kindOf(raw))
	}
	for _, field := range []string{"role", "content"} {
		if object.Get(field) == nil {
			return fail(MissingField, "."+field, "missing required field '%s'", field)
		}
	}
	role, _ := rawjson.String(object.Get("role"))
	switch Role(role) {
	case User, Assistant, Orchestrator:
	default:
		return fail(InvalidValue, ".role", "has invalid role '%s', must be user|assistant|orchestrator", shown(object.Get("role")))
	}
	message := Message{Role: Role(role)}
	timestamp := object.Get("timestamp")
	switch kindOf(timestamp) {
	case "dict", "list", "bool":
		return fail(TypeError, ".timestamp", "has a timestamp that must be a string, got %s", kindOf(timestamp))
	}
	message.Timestamp = oneLine(textOf(timestamp), maxTimestamp)
	if strings.TrimSpace(message.Timestamp) == "" {
		message.Timestamp = timestampOf(now)
	}
	given, err := readAttachments(object.Get("attachments"), index, limits)
	if err != nil {
		return Message{}, err
	}
	content, attached := readContent(object.Get("content"), limits.MaxAttachments-len(given))
	message.Content, message.Attachments = content, append(given, attached...)
	return message, nil
}
