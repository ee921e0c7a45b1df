package langchaingo

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tmc/langchaingo/llms"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

// mirrored makes the entry of a message.
func mirrored(message llms.ChatMessage) (mirror.Message, error) {
	data, err := json.Marshal(message)
	if err != nil {
		return mirror.Message{}, fmt.Errorf("langchaingo: the message is no JSON: %w", err)
	}
	kept := mirror.Message{Vendor: vendor}
	if kept.Own, err = json.Marshal(form{Type: message.GetType(), Message: data}); err != nil {
		return kept, err
	}
	entry := continuo.Entry{Content: continuo.Text(message.GetContent())}
	switch m := message.(type) {
	case llms.HumanChatMessage:
		entry.Role = continuo.User
	case llms.SystemChatMessage:
		entry.Role = continuo.System
	case llms.AIChatMessage:
		entry.Role = continuo.Assistant
		for _, call := range m.ToolCalls {
			if call.FunctionCall != nil {
				entry.ToolCalls = append(entry.ToolCalls, continuo.ToolCall{ID: call.ID, Name: call.FunctionCall.Name, Arguments: call.FunctionCall.Arguments})
			}
		}
		if m.ReasoningContent != "" {
			entry.Reasoning = &continuo.Reasoning{Text: m.ReasoningContent}
		}
	case llms.ToolChatMessage:
		entry.Role, entry.ToolCallID = continuo.Tool, m.ID
	case llms.GenericChatMessage:
		entry.Role, entry.Name = continuo.User, m.Name
		if m.Role == "assistant" || m.Role == "ai" {
			entry.Role = continuo.Assistant
		}
	default: // a function's result has no call that it belongs to
		return kept, nil
	}
	plain, err := messageOf(&entry)
	kept.Entries, kept.Plain = []continuo.Entry{entry}, err == nil && reflect.DeepEqual(plain, message) && entry.Role != continuo.Tool
	return kept, nil
}

// messageOf returns the message of an entry; nil for a hidden entry that is no message.
func messageOf(entry *continuo.Entry) (llms.ChatMessage, error) {
	if data := entry.Vendor[vendor]; data != nil {
		var own form
		if err := json.Unmarshal(data, &own); err != nil {
			return nil, err
		}
		return decoded(own)
	}
	text := entry.Content.String()
	switch {
	case entry.Hidden:
		return nil, nil //nolint:nilnil // nothing of it is for models
	case entry.Role == continuo.User:
		return llms.HumanChatMessage{Content: text}, nil
	case entry.Role == continuo.System:
		return llms.SystemChatMessage{Content: text}, nil
	case entry.Role == continuo.Tool:
		return llms.ToolChatMessage{ID: entry.ToolCallID, Content: text}, nil
	}
	message := llms.AIChatMessage{Content: text}
	for _, call := range entry.ToolCalls {
		message.ToolCalls = append(message.ToolCalls, llms.ToolCall{ID: call.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: call.Name, Arguments: call.Arguments}})
	}
	if entry.Reasoning != nil {
		message.ReasoningContent = entry.Reasoning.Text
	}
	return message, nil
}

// decoded reads a message by its type.
func decoded(own form) (llms.ChatMessage, error) {
	switch own.Type {
	case llms.ChatMessageTypeAI:
		return into[llms.AIChatMessage](own.Message)
	case llms.ChatMessageTypeHuman:
		return into[llms.HumanChatMessage](own.Message)
	case llms.ChatMessageTypeSystem:
		return into[llms.SystemChatMessage](own.Message)
	case llms.ChatMessageTypeGeneric:
		return into[llms.GenericChatMessage](own.Message)
	case llms.ChatMessageTypeFunction:
		return into[llms.FunctionChatMessage](own.Message)
	case llms.ChatMessageTypeTool:
		return into[llms.ToolChatMessage](own.Message)
	}
	return nil, fmt.Errorf("langchaingo: no message has the type %q", own.Type)
}

func into[Message llms.ChatMessage](data []byte) (llms.ChatMessage, error) {
	var message Message
	err := json.Unmarshal(data, &message)
	return message, err
}
