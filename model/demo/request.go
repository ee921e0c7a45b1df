package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// request is what the model reads from a body.
type request struct {
	systems  []string  // the system messages
	step     *step     // the step of the request; nil for none
	role     *crewRole // the role of a crew's request; nil for none
	messages []message
	tools    []string
	marker   string // the line about messages left out, empty when there is none
	size     int    // characters of all messages and of the definitions of tools
}

// message is a message other than a system message.
type message struct {
	role   string
	text   string
	callID string            // of a tool result
	calls  map[string]string // of an assistant message: names by id
}

// toolSpec is a tool of a request, and how many characters its definition has.
type toolSpec struct {
	name string
	size int
}

// UnmarshalJSON is part of json.Unmarshaler.
func (t *toolSpec) UnmarshalJSON(data []byte) error {
	var wire struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	err := json.Unmarshal(data, &wire)
	*t = toolSpec{wire.Function.Name, utf8.RuneCount(data)}
	return err
}

func parseRequest(body []byte) (*request, error) {
	var wire struct {
		Messages []struct {
			Role       string           `json:"role"`
			Content    continuo.Content `json:"content"`
			ToolCallID string           `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name string `json:"name"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools      []toolSpec      `json:"tools"`
		ToolChoice json.RawMessage `json:"tool_choice"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, err
	}
	if len(wire.Messages) == 0 {
		return nil, errors.New("it has no messages")
	}
	parsed := &request{}
	for _, given := range wire.Messages {
		text := contentText(given.Content)
		parsed.size += utf8.RuneCountInString(text)
		if given.Role == "system" || given.Role == "developer" {
			parsed.systems = append(parsed.systems, text)
			continue
		}
		calls := map[string]string{}
		for _, call := range given.ToolCalls {
			calls[call.ID] = call.Function.Name
		}
		if given.Role == "user" {
			marked := parsed.marker
			if text = parsed.takeMarker(text); text == "" && parsed.marker != marked {
				continue // the message was only the marker
			}
		}
		parsed.messages = append(parsed.messages, message{given.Role, text, given.ToolCallID, calls})
	}
	choice, _ := rawjson.String(wire.ToolChoice)
	for _, tool := range wire.Tools {
		parsed.size += tool.size
		if choice != "none" {
			parsed.tools = append(parsed.tools, tool.name)
		}
	}
	parsed.step, parsed.role = parseStep(parsed.systems), parseRole(parsed.systems, parsed.messages)
	return parsed, nil
}

// contentText returns content as text; other parts are named.
func contentText(content continuo.Content) string {
	if !content.IsParts() {
		return content.String()
	}
	var texts []string
	for _, part := range content.Parts() {
		if part.IsText() {
			texts = append(texts, part.Text)
		} else {
			texts = append(texts, fmt.Sprintf("[%s]", part.Type))
		}
	}
	return strings.Join(texts, "\n")
}

// takeMarker records a marker on the first line of a text and returns the text after it.
func (r *request) takeMarker(text string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	first = strings.TrimSpace(first)
	if !strings.HasPrefix(first, "[") || !strings.HasSuffix(first, "]") {
		return text
	}
	for _, word := range []string{"earlier messages", "truncated", "omitted", "left out"} {
		if strings.Contains(strings.ToLower(first), word) {
			r.marker = first
			return strings.TrimSpace(rest)
		}
	}
	return text
}

// users returns the texts of the user's messages.
func (r *request) users() []string {
	var texts []string
	for _, message := range r.messages {
		if message.role == "user" {
			texts = append(texts, message.text)
		}
	}
	return texts
}

// results returns the tool results that the request ends with, each with the tool's name.
func (r *request) results() (results []message, names []string) {
	first := len(r.messages)
	for first > 0 && r.messages[first-1].role == "tool" {
		first--
	}
	for _, result := range r.messages[first:] {
		name := "the tool"
		if first > 0 && r.messages[first-1].calls[result.callID] != "" {
			name = r.messages[first-1].calls[result.callID]
		}
		results, names = append(results, result), append(names, name)
	}
	return results, names
}
