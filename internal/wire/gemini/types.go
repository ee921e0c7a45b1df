// Package gemini holds the wire types of the Gemini API and the translation between its contents and the entries of the
// log, in both directions.
//
// The renderer writes a request's contents with [Parts], the model client reads answers into the same parts, and an
// endpoint for clients of the API reads their contents with [Entries] and writes answers with [Parts]. Names and
// meanings are those of the API's reference (GenerateContentRequest and GenerateContentResponse); members are read in
// camelCase and in snake_case, as the API reads them, and written in camelCase.
//
// # Parts and entries
//
// A content of the model is one assistant entry. Its text is that of the parts that are no thoughts: parts that follow
// each other are pieces of one text, others are separated by blank lines. Where the entry does not have all that the
// parts have (thought signatures, ids, thoughts, code that the provider runs, unknown parts), the parts are kept byte
// for byte as vendor data {"parts": [parts]}, and are sent back to that provider as they are, as long as the entry's
// content and calls are still those of the parts. Otherwise a call keeps the signature of its part.
//
// Pitfalls: a thought signature belongs to its part: parts with one are never merged with others. A functionCall may
// have no id; its entry has one, call_0 and so on, which is not sent. Responses are matched by id, or else by name and
// order.
package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Request is the body of generateContent and streamGenerateContent; the model is in the path. Members are in the order
// in which requests are written: those that stay the same come first and the contents last, so that a longer
// conversation only adds bytes at the end.
type Request struct {
	GenerationConfig  *GenerationConfig `json:"generationConfig,omitempty"`
	SafetySettings    json.RawMessage   `json:"safetySettings,omitempty"`
	CachedContent     string            `json:"cachedContent,omitempty"`
	ToolConfig        json.RawMessage   `json:"toolConfig,omitempty"`
	Tools             []json.RawMessage `json:"tools,omitempty"` // Tool objects, or tools of the provider
	SystemInstruction *Content          `json:"systemInstruction,omitempty"`
	// Contents is the last member; the renderer adds it to the others.
	Contents []Content `json:"contents,omitempty"`
}

// GenerationConfig configures the answer.
type GenerationConfig struct {
	Temperature        *float64        `json:"temperature,omitempty"`
	TopP               *float64        `json:"topP,omitempty"`
	TopK               *int            `json:"topK,omitempty"`
	MaxOutputTokens    int             `json:"maxOutputTokens,omitempty"`
	StopSequences      []string        `json:"stopSequences,omitempty"`
	PresencePenalty    *float64        `json:"presencePenalty,omitempty"`
	FrequencyPenalty   *float64        `json:"frequencyPenalty,omitempty"`
	Seed               *int64          `json:"seed,omitempty"`
	ResponseMimeType   string          `json:"responseMimeType,omitempty"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
	ThinkingConfig     *ThinkingConfig `json:"thinkingConfig,omitempty"`
}

// ThinkingConfig configures the thoughts of a model that has them. Older models have a budget in tokens, newer ones a
// level: minimal, low, medium or high.
type ThinkingConfig struct {
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
	ThinkingBudget  *int   `json:"thinkingBudget,omitempty"`
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
}

// ToolConfig says whether the model calls functions.
type ToolConfig struct {
	FunctionCallingConfig FunctionCallingConfig `json:"functionCallingConfig"`
}

// FunctionCallingConfig has the mode AUTO, ANY or NONE. AllowedFunctionNames are the only functions of the mode ANY.
type FunctionCallingConfig struct {
	Mode                 string   `json:"mode"`
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

// Tool is the functions that the model may call. All of them are in one Tool.
type Tool struct {
	FunctionDeclarations []FunctionDeclaration `json:"functionDeclarations"`
}

// FunctionDeclaration is a function; ParametersJSONSchema is a JSON Schema.
type FunctionDeclaration struct {
	Name                 string          `json:"name"`
	Description          string          `json:"description,omitempty"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// Content is one message. Its parts are kept raw.
type Content struct {
	Role  string            `json:"role,omitempty"` // user or model; absent: user
	Parts []json.RawMessage `json:"parts"`
}

// Response is an answer, or a piece of a streamed one.
type Response struct {
	Candidates     []Candidate     `json:"candidates,omitempty"`
	PromptFeedback *PromptFeedback `json:"promptFeedback,omitempty"`
	UsageMetadata  *Usage          `json:"usageMetadata,omitempty"`
	ModelVersion   string          `json:"modelVersion,omitempty"`
	ResponseID     string          `json:"responseId,omitempty"`
	// Error is that of a failed stream.
	Error json.RawMessage `json:"error,omitempty"`
}

// Candidate is one answer. FinishReason is empty until the answer is complete.
type Candidate struct {
	Content       Content `json:"content"`
	FinishReason  string  `json:"finishReason,omitempty"`
	FinishMessage string  `json:"finishMessage,omitempty"`
	Index         int     `json:"index"`
}

// PromptFeedback says why a prompt was refused.
type PromptFeedback struct {
	BlockReason        string `json:"blockReason,omitempty"`
	BlockReasonMessage string `json:"blockReasonMessage,omitempty"`
}

// Usage counts tokens. Thoughts are not among the candidates' tokens, results of the provider's tools not among the
// prompt's.
type Usage struct {
	PromptTokenCount        int `json:"promptTokenCount"`
	CachedContentTokenCount int `json:"cachedContentTokenCount,omitempty"`
	CandidatesTokenCount    int `json:"candidatesTokenCount,omitempty"`
	ToolUsePromptTokenCount int `json:"toolUsePromptTokenCount,omitempty"`
	ThoughtsTokenCount      int `json:"thoughtsTokenCount,omitempty"`
	TotalTokenCount         int `json:"totalTokenCount,omitempty"`
}

// Error is the error of a refused request.
type Error struct {
	Code    int    `json:"code"` // the HTTP status
	Message string `json:"message"`
	Status  string `json:"status"` // INVALID_ARGUMENT, RESOURCE_EXHAUSTED and similar
}

// Answers is the pieces of an answer that did not come as events: one object, or a list of them.
type Answers []Response

// UnmarshalJSON reads an object or a list.
func (a *Answers) UnmarshalJSON(data []byte) error {
	var list []Response
	if json.Unmarshal(data, &list) == nil {
		*a = list
		return nil
	}
	var one Response
	if err := json.Unmarshal(data, &one); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	*a = Answers{one}
	return nil
}

// Part is a part as read. Raw is the whole part.
type Part struct {
	HasText  bool
	Text     string
	Thought  bool
	Signed   bool
	Call     *FunctionCall
	Response *FunctionResponse
	Raw      json.RawMessage
}

// FunctionCall is a call of the model. Args is an object.
type FunctionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// FunctionResponse is the result of a call. Response is an object, by convention with output or error.
type FunctionResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
}

// member returns a member of a part by its name in camelCase or in snake_case.
func member(object rawjson.Object, camel, snake string) json.RawMessage {
	if value := object.Get(camel); value != nil {
		return value
	}
	return object.Get(snake)
}

// ParsePart reads a part.
func ParsePart(raw json.RawMessage) (Part, error) {
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return Part{}, fmt.Errorf("part: %w", err)
	}
	part := Part{Raw: raw, Signed: !rawjson.IsNull(member(object, "thoughtSignature", "thought_signature"))}
	part.Text, part.HasText = rawjson.String(object.Get("text"))
	part.Thought = string(object.Get("thought")) == "true"
	if call := member(object, "functionCall", "function_call"); !rawjson.IsNull(call) {
		if err := json.Unmarshal(call, &part.Call); err != nil {
			return Part{}, fmt.Errorf("functionCall: %w", err)
		}
		part.Call.Args = compact(part.Call.Args)
	}
	if response := member(object, "functionResponse", "function_response"); !rawjson.IsNull(response) {
		if err := json.Unmarshal(response, &part.Response); err != nil {
			return Part{}, fmt.Errorf("functionResponse: %w", err)
		}
		part.Response.Response = compact(part.Response.Response)
	}
	return part, nil
}

// Kind names what a part is: thought, text, or its member that is no metadata of a part, such as functionCall.
func Kind(raw json.RawMessage) string {
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return ""
	}
	if string(object.Get("thought")) == "true" {
		return "thought"
	}
	own := object.Without("thought", "thoughtSignature", "thought_signature", "videoMetadata", "partMetadata")
	if len(own) == 0 {
		return ""
	}
	switch key := own[0].Key; key {
	case "function_call":
		return "functionCall"
	case "function_response":
		return "functionResponse"
	case "inline_data":
		return "inlineData"
	default:
		return key
	}
}

// compact removes white space between tokens, as storing the part does.
func compact(value json.RawMessage) json.RawMessage {
	if value == nil {
		return nil
	}
	return rawjson.MustMarshal(value)
}

// Mergeable reports whether the part is a piece of a text that may be joined with the piece before it.
func (p Part) Mergeable() bool {
	object, err := rawjson.ParseObject(p.Raw)
	return err == nil && p.HasText && len(object.Without("text", "thought")) == 0
}
