package eino

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/cloudwego/eino/schema"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

// form is what an entry does not say of its message.
type form struct {
	Message *schema.Message        `json:"message,omitempty"`
	Agentic *schema.AgenticMessage `json:"agentic,omitempty"`
	// Text says that the message's content, which is left out here, is the entry's.
	Text bool `json:"text,omitempty"`
	// Part says that the entry belongs to the message of an entry before it.
	Part bool `json:"part,omitempty"`
}

// mirrored makes the entries of a message.
func mirrored[M Message](message M) (mirror.Message, error) {
	if message == nil {
		return mirror.Message{}, fmt.Errorf("the message is nil")
	}
	switch m := any(message).(type) {
	case *schema.Message:
		return mirroredMessage(m)
	case *schema.AgenticMessage:
		return mirroredAgentic(m)
	}
	return mirror.Message{}, fmt.Errorf("no message has the type %T", message)
}

func mirroredMessage(message *schema.Message) (mirror.Message, error) {
	kept := mirror.Message{Vendor: vendor}
	entry := continuo.Entry{Role: continuo.Role(message.Role), Name: message.Name, Content: continuo.Text(textOf(message))}
	switch message.Role {
	case schema.User, schema.System:
	case schema.Assistant:
		for _, call := range message.ToolCalls {
			entry.ToolCalls = append(entry.ToolCalls, continuo.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
		if message.ReasoningContent != "" {
			entry.Reasoning = &continuo.Reasoning{Text: message.ReasoningContent}
		}
	case schema.Tool:
		entry.ToolCallID, entry.ToolName = message.ToolCallID, message.ToolName
	default:
		return kept, fmt.Errorf("a message has the role %q", message.Role)
	}
	own := form{Message: message}
	if message.Role != schema.Tool { // the log may keep the output of a tool elsewhere
		kept.Plain = reflect.DeepEqual(fromEntry(&entry), message)
		if message.Content != "" && entry.Content.String() == message.Content {
			lean := *message
			lean.Content = ""
			own = form{Message: &lean, Text: true}
		}
	}
	var err error
	kept.Entries = []continuo.Entry{entry}
	kept.Own, err = json.Marshal(own)
	if err != nil {
		return kept, fmt.Errorf("the message is no JSON: %w", err)
	}
	return kept, nil
}

func mirroredAgentic(message *schema.AgenticMessage) (mirror.Message, error) {
	kept := mirror.Message{Vendor: vendor}
	part, err := json.Marshal(form{Part: true})
	if err != nil {
		return kept, err
	}
	if kept.Own, err = json.Marshal(form{Agentic: message}); err != nil {
		return kept, fmt.Errorf("the message is no JSON: %w", err)
	}
	said := continuo.Entry{Role: continuo.Role(message.Role), Content: continuo.Text(textOf(message))}
	var thoughts []string
	for _, block := range message.ContentBlocks {
		switch {
		case block == nil:
		case block.Reasoning != nil:
			thoughts = append(thoughts, block.Reasoning.Text)
		case block.FunctionToolCall != nil:
			call := block.FunctionToolCall
			said.ToolCalls = append(said.ToolCalls, continuo.ToolCall{ID: call.CallID, Name: call.Name, Arguments: call.Arguments})
		case block.FunctionToolResult != nil:
			result := block.FunctionToolResult
			kept.Entries = append(kept.Entries, continuo.Entry{
				Role: continuo.Tool, ToolCallID: result.CallID, ToolName: result.Name, Content: continuo.Text(resultText(result)),
			})
		}
	}
	if message.Role == schema.AgenticRoleTypeAssistant && len(thoughts) > 0 {
		said.Reasoning = &continuo.Reasoning{Text: strings.Join(thoughts, "\n")}
	}
	if said.Content.String() != "" || len(said.ToolCalls) > 0 {
		kept.Entries = append(kept.Entries, said)
	}
	for i := range kept.Entries {
		kept.Entries[i].Vendor = map[string]json.RawMessage{vendor: part} // the first one gets the message
	}
	return kept, nil
}

func resultText(result *schema.FunctionToolResult) string {
	var texts []string
	for _, block := range result.Content {
		switch {
		case block == nil:
		case block.Text != nil:
			texts = append(texts, block.Text.Text)
		default:
			texts = append(texts, fmt.Sprintf("[%s]", block.Type))
		}
	}
	return strings.Join(texts, "\n")
}

// textOf is the text of a message, as an entry has it.
func textOf[M Message](message M) string {
	var texts []string
	add := func(text, kind string) {
		if text == "" {
			text = "[" + kind + "]"
		}
		texts = append(texts, text)
	}
	switch m := any(message).(type) {
	case *schema.Message:
		for _, part := range m.UserInputMultiContent {
			add(part.Text, string(part.Type))
		}
		for _, part := range m.AssistantGenMultiContent {
			add(part.Text, string(part.Type))
		}
		for _, part := range m.MultiContent {
			add(part.Text, string(part.Type))
		}
		if len(texts) == 0 {
			return m.Content
		}
	case *schema.AgenticMessage:
		for _, block := range m.ContentBlocks {
			switch {
			case block == nil || block.Reasoning != nil || block.FunctionToolCall != nil || block.FunctionToolResult != nil:
			case block.UserInputText != nil:
				add(block.UserInputText.Text, string(block.Type))
			case block.AssistantGenText != nil:
				add(block.AssistantGenText.Text, string(block.Type))
			default:
				add("", string(block.Type))
			}
		}
	}
	return strings.Join(texts, "\n")
}

// messageOf returns the message of an entry; nil for an entry that is not the first of one.
func messageOf[M Message](entry *continuo.Entry) (M, error) {
	var own form
	if data := entry.Vendor[vendor]; data != nil {
		if err := json.Unmarshal(data, &own); err != nil {
			return nil, err
		}
	}
	if own.Part || own.Message == nil && own.Agentic == nil && entry.Hidden {
		return nil, nil //nolint:nilnil // nothing of it is for models
	}
	if own.Text {
		own.Message.Content = entry.Content.String()
	}
	var message any
	switch any(M(nil)).(type) {
	case *schema.Message:
		if message = own.Message; own.Message == nil && own.Agentic == nil {
			message = fromEntry(entry)
		}
	case *schema.AgenticMessage:
		if message = own.Agentic; own.Message == nil && own.Agentic == nil {
			message = agenticFromEntry(entry)
		}
	}
	if typed := message.(M); typed != nil { //nolint:forcetypeassert // of the type that M is
		return typed, nil
	}
	return nil, fmt.Errorf("the session has messages of Eino's other type, not %T", message)
}

// fromEntry is the message that an entry says.
func fromEntry(entry *continuo.Entry) *schema.Message {
	message := &schema.Message{
		Role: schema.RoleType(entry.Role), Name: entry.Name, Content: entry.Content.String(), ToolCallID: entry.ToolCallID, ToolName: entry.ToolName,
	}
	for _, call := range entry.ToolCalls {
		message.ToolCalls = append(message.ToolCalls, schema.ToolCall{ID: call.ID, Type: "function", Function: schema.FunctionCall{Name: call.Name, Arguments: call.Arguments}})
	}
	if entry.Reasoning != nil {
		message.ReasoningContent = entry.Reasoning.Text
	}
	return message
}

// agenticFromEntry is the message of the other type that an entry says: one that Continuo wrote, or a redacted one.
func agenticFromEntry(entry *continuo.Entry) *schema.AgenticMessage {
	text := entry.Content.String()
	switch entry.Role {
	case continuo.Assistant:
		message := &schema.AgenticMessage{Role: schema.AgenticRoleTypeAssistant}
		if entry.Reasoning != nil {
			message.ContentBlocks = append(message.ContentBlocks, schema.NewContentBlock(&schema.Reasoning{Text: entry.Reasoning.Text}))
		}
		if text != "" {
			message.ContentBlocks = append(message.ContentBlocks, schema.NewContentBlock(&schema.AssistantGenText{Text: text}))
		}
		for _, call := range entry.ToolCalls {
			message.ContentBlocks = append(message.ContentBlocks, schema.NewContentBlock(&schema.FunctionToolCall{CallID: call.ID, Name: call.Name, Arguments: call.Arguments}))
		}
		return message
	case continuo.Tool:
		content := []*schema.FunctionToolResultContentBlock{{Type: schema.FunctionToolResultContentBlockTypeText, Text: &schema.UserInputText{Text: text}}}
		return &schema.AgenticMessage{Role: schema.AgenticRoleTypeUser, ContentBlocks: []*schema.ContentBlock{
			schema.NewContentBlock(&schema.FunctionToolResult{CallID: entry.ToolCallID, Name: entry.ToolName, Content: content}),
		}}
	}
	return &schema.AgenticMessage{Role: schema.AgenticRoleType(entry.Role), ContentBlocks: []*schema.ContentBlock{schema.NewContentBlock(&schema.UserInputText{Text: text})}}
}
