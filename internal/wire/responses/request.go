// Package responses holds the wire types of OpenAI's Responses API and the translation between its items and the
// entries of the log, in both directions.
//
// The renderer writes a request's input with [Items], the model client reads answers into the same items, and an
// endpoint for clients of the API reads their input with [Entries] and writes answers with [Items]. Names and meanings
// are those of the published OpenAPI document (openai/openai-openapi) and of the Open Responses specification.
//
// # Items and entries
//
// One assistant entry is one round: reasoning, messages and calls that follow each other. Its text is that of all
// messages, separated by blank lines. Where the entry does not have all that the items have (ids of reasoning,
// encrypted content, the order of messages and calls, items of tools that the provider runs, unknown types), the items
// are kept byte for byte as vendor data {"items": [items]}, and are sent back to that provider as they are, as long as
// the entry's content and calls are still those of the items. Otherwise only reasoning and compaction items are sent
// back, without their ids, and the rest is written from the entry.
//
// Pitfalls: a reasoning item without encrypted content exists at the provider only, and requests with store=false must
// not contain it. The API refuses reasoning at the end of a list of items. Ids of calls must be unique in a request.
package responses

import (
	"encoding/json"
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// IncludeEncryptedReasoning is the element of Request.Include that asks for the encrypted content of reasoning items,
// which a request that is not stored needs to send them back. Models without reasoning refuse it.
const IncludeEncryptedReasoning = "reasoning.encrypted_content"

// Request is the body of POST /responses. Members are in the order in which requests are written: those that stay the
// same come first and the input last, so that a longer conversation only adds bytes at the end.
type Request struct {
	Model              string          `json:"model,omitempty"`
	Stream             bool            `json:"stream,omitempty"`
	Store              *bool           `json:"store,omitempty"` // absent: true
	Background         bool            `json:"background,omitempty"`
	MaxOutputTokens    int             `json:"max_output_tokens,omitempty"`
	Temperature        *float64        `json:"temperature,omitempty"`
	TopP               *float64        `json:"top_p,omitempty"`
	ServiceTier        string          `json:"service_tier,omitempty"`
	SafetyIdentifier   string          `json:"safety_identifier,omitempty"`
	Reasoning          *Reasoning      `json:"reasoning,omitempty"`
	Include            []string        `json:"include,omitempty"`
	Text               *Text           `json:"text,omitempty"`
	Metadata           json.RawMessage `json:"metadata,omitempty"`
	PromptCacheKey     string          `json:"prompt_cache_key,omitempty"`
	Truncation         string          `json:"truncation,omitempty"` // auto or disabled
	PreviousResponseID string          `json:"previous_response_id,omitempty"`
	// Conversation is an id or an object with one.
	Conversation json.RawMessage `json:"conversation,omitempty"`
	// ToolChoice is none, auto, required, or an object that names tools.
	ToolChoice        json.RawMessage `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitempty"`
	// Tools are Tool objects, or tools of other types, kept raw.
	Tools        []json.RawMessage `json:"tools,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	// Input is the last member; the renderer adds it to the others.
	Input Input `json:"input,omitempty"`
}

// Input is the items of a request, kept raw. A string reads as one user message.
type Input []json.RawMessage

// UnmarshalJSON reads a string or a list of objects.
func (in *Input) UnmarshalJSON(data []byte) error {
	if text, ok := rawjson.String(data); ok {
		*in = Input{rawjson.MustMarshal(message{Type: TypeMessage, Role: "user", Content: rawjson.MustMarshal(text)})}
		return nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return fmt.Errorf("input must be a string or a list of items: %w", err)
	}
	*in = items
	return nil
}

// Reasoning configures a reasoning model.
type Reasoning struct {
	Effort  string `json:"effort,omitempty"`  // none, minimal, low, medium, high or xhigh
	Summary string `json:"summary,omitempty"` // auto, concise or detailed: a readable summary of the reasoning
}

// Text configures the text of an answer.
type Text struct {
	Format    *Format `json:"format,omitempty"`
	Verbosity string  `json:"verbosity,omitempty"`
}

// Format is the required form of an answer.
type Format struct {
	Type   string          `json:"type"` // text, json_object or json_schema
	Name   string          `json:"name,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Strict *bool           `json:"strict,omitempty"`
}

// Tool is a function that the model may call. Without Strict the API makes the schema strict where it can.
type Tool struct {
	Type        string          `json:"type"` // "function"
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}
