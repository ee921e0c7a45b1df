package adk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	continuo "github.com/continuo-log/continuo"
)

// form is an event as its first entry has it. The content of an event that is one text is that of the entry.
type form struct {
	Event *session.Event `json:"event"`
	Text  string         `json:"text,omitempty"` // the role of the content that is left out
}

// entriesOf makes the entries of an event, none where it has no content that could be shown, and its form.
func entriesOf(event *session.Event) ([]continuo.Entry, json.RawMessage, error) {
	kept := form{Event: event}
	entries, err := shown(event)
	if err != nil {
		return nil, nil, err
	}
	if content := event.Content; len(entries) == 1 && entries[0].Content.IsText() && onlyText(content) && content.Role != "" {
		lean := *event
		lean.Content = nil
		kept = form{Event: &lean, Text: content.Role}
	}
	data, err := json.Marshal(kept)
	return entries, data, err
}

// onlyText reports whether a content is one part that has nothing but a text.
func onlyText(content *genai.Content) bool {
	return len(content.Parts) == 1 && content.Parts[0] != nil && content.Parts[0].Text != "" &&
		reflect.DeepEqual(*content.Parts[0], genai.Part{Text: content.Parts[0].Text})
}

// eventOf returns the event of an entry; nil for an entry that is not the first of one.
func eventOf(entry *continuo.Entry) (*session.Event, error) {
	data := entry.Vendor[vendor]
	if data == nil {
		return nil, nil //nolint:nilnil // the entry belongs to the event before it, or was redacted
	}
	var kept form
	if err := json.Unmarshal(data, &kept); err != nil {
		return nil, err
	}
	if kept.Event == nil {
		return nil, fmt.Errorf("it has no event: %s", data)
	}
	if kept.Text != "" {
		kept.Event.Content = &genai.Content{Role: kept.Text, Parts: []*genai.Part{{Text: entry.Content.String()}}}
	}
	return kept.Event, nil
}

// shown makes the entries in which people and models see an event.
func shown(event *session.Event) ([]continuo.Entry, error) {
	if event.Content == nil {
		return nil, nil
	}
	message := continuo.Entry{Role: continuo.Assistant, CreatedAt: event.Timestamp}
	if event.Author == "user" || event.Content.Role == genai.RoleUser {
		message.Role = continuo.User
	} else {
		message.Author = &continuo.Author{AgentName: event.Author}
	}
	var texts, thoughts []string
	var results []continuo.Entry
	for _, part := range event.Content.Parts {
		switch {
		case part == nil:
		case part.Thought:
			thoughts = append(thoughts, part.Text)
		case part.FunctionCall != nil:
			arguments, err := json.Marshal(part.FunctionCall.Args)
			if err != nil {
				return nil, err
			}
			message.ToolCalls = append(message.ToolCalls, continuo.ToolCall{ID: part.FunctionCall.ID, Name: part.FunctionCall.Name, Arguments: string(arguments)})
		case part.FunctionResponse != nil:
			output, err := json.Marshal(part.FunctionResponse.Response)
			if err != nil {
				return nil, err
			}
			results = append(results, continuo.Entry{
				Role: continuo.Tool, CreatedAt: event.Timestamp, ToolCallID: part.FunctionResponse.ID, ToolName: part.FunctionResponse.Name, Content: continuo.Text(string(output)),
			})
		default:
			texts = append(texts, textOf(part))
		}
	}
	if len(thoughts) > 0 && message.Role == continuo.Assistant {
		message.Reasoning = &continuo.Reasoning{Text: strings.Join(thoughts, "\n")}
	}
	if text := strings.Join(texts, "\n"); text != "" || len(message.ToolCalls) > 0 {
		message.Content = continuo.Text(text)
		return append(results, message), nil
	}
	return results, nil
}

// textOf is what is shown of a part.
func textOf(part *genai.Part) string {
	switch {
	case part.InlineData != nil:
		return fmt.Sprintf("[%s, %d bytes]", cmp.Or(part.InlineData.MIMEType, "data"), len(part.InlineData.Data))
	case part.FileData != nil:
		return fmt.Sprintf("[%s]", part.FileData.FileURI)
	case part.ExecutableCode != nil:
		return part.ExecutableCode.Code
	case part.CodeExecutionResult != nil:
		return part.CodeExecutionResult.Output
	}
	return part.Text
}
