package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

var chatMembers = members{
	"model": hereRow, "messages": hereRow, "stream": hereRow, "stream_options": hereRow, "tools": hereRow, "store": hereRow, "metadata": hereRow,
	"max_tokens": limitRow, "max_completion_tokens": limitRow, "temperature": temperatureRow, "top_p": topPRow, "top_k": topKRow, "stop": stopRow,
	"presence_penalty": presenceRow, "frequency_penalty": frequencyRow, "seed": seedRow, "service_tier": tierRow, "user": userRow,
	"safety_identifier": userRow, "prompt_cache_key": cacheKeyRow, "verbosity": verbosityRow, "reasoning_effort": effortRow, "parallel_tool_calls": parallelRow,
	"tool_choice":     {as: "tool_choice", usual: `"auto"`, read: readChatChoice},
	"response_format": {as: "response_format", usual: `{"type":"text"}`, read: readChatFormat},
	"n":               {usual: "1", read: unreadable}, "logprobs": {usual: "false", read: unreadable}, "modalities": {usual: `["text"]`, read: unreadable},
}

var responsesMembers = members{
	"model": hereRow, "input": hereRow, "instructions": hereRow, "stream": hereRow, "stream_options": hereRow, "store": hereRow, "background": hereRow,
	"conversation": hereRow, "previous_response_id": hereRow, "metadata": hereRow, "include": hereRow, "tools": hereRow, "truncation": hereRow,
	"max_output_tokens": limitRow, "temperature": temperatureRow, "top_p": topPRow, "service_tier": tierRow, "user": userRow,
	"safety_identifier": userRow, "prompt_cache_key": cacheKeyRow, "parallel_tool_calls": parallelRow,
	"tool_choice": {as: "tool_choice", usual: `"auto"`, read: readResponsesChoice},
	"reasoning":   insideRow, "reasoning.effort": effortRow, "reasoning.summary": hereRow, "reasoning.generate_summary": hereRow,
	"text": insideRow, "text.verbosity": verbosityRow, "text.format": {as: "response_format", usual: `{"type":"text"}`, read: readResponsesFormat},
	"top_logprobs": {usual: "0", read: unreadable},
}

var anthropicMembers = members{
	"model": hereRow, "messages": hereRow, "system": hereRow, "stream": hereRow, "tools": hereRow, "cache_control": hereRow,
	"max_tokens": limitRow, "temperature": temperatureRow, "top_p": topPRow, "top_k": topKRow, "stop_sequences": stopRow,
	"service_tier": {as: "service_tier", read: readAnthropicTier, usual: `"auto"`}, "metadata": insideRow, "metadata.user_id": userRow,
	"tool_choice": {as: "tool_choice", usual: `{"type":"auto"}`, read: readAnthropicChoice},
	"thinking":    {as: "reasoning_effort", read: readThinking}, "output_config": insideRow, "output_config.effort": effortRow,
	"output_config.format": {as: "response_format", read: readAnthropicFormat}, "output_format": {as: "response_format", read: readAnthropicFormat},
}

var geminiMembers = members{
	"contents": hereRow, "systemInstruction": hereRow, "tools": hereRow, "model": hereRow,
	"generationConfig": insideRow, "toolConfig": insideRow,
	"generationConfig.temperature": temperatureRow, "generationConfig.topP": topPRow, "generationConfig.topK": topKRow,
	"generationConfig.maxOutputTokens": limitRow, "generationConfig.stopSequences": stopRow, "generationConfig.presencePenalty": presenceRow,
	"generationConfig.frequencyPenalty": frequencyRow, "generationConfig.seed": seedRow, "generationConfig.candidateCount": {usual: "1", read: unreadable},
	"generationConfig.responseModalities": {usual: `["TEXT"]`, read: unreadable},
	"generationConfig.responseMimeType":   {as: "response_format", usual: `"text/plain"`, read: readMimeType},
	"generationConfig.responseSchema":     {as: "response_format", read: readOpenAPISchema}, "generationConfig.responseJsonSchema": {as: "response_format", read: readJSONSchema},
	"generationConfig.thinkingConfig": insideRow, "generationConfig.thinkingConfig.includeThoughts": hereRow,
	"generationConfig.thinkingConfig.thinkingBudget": {as: "reasoning_effort", read: readBudget}, "generationConfig.thinkingConfig.thinkingLevel": effortRow,
	"toolConfig.functionCallingConfig": {as: "tool_choice", read: readGeminiChoice},
}

// errNoCounterpart says that a value can be expressed in no other protocol.
var errNoCounterpart = errors.New("no other protocol has this")

// unreadable refuses a value that is not the usual one.
func unreadable(*Asked, json.RawMessage) error { return errNoCounterpart }

// modes are the choices of tools that are a string, by their names in all protocols.
var modes = map[string]string{
	"auto": continuo.ChoiceAuto, "none": continuo.ChoiceNone, "required": continuo.ChoiceRequired, "any": continuo.ChoiceRequired, "validated": continuo.ChoiceAuto,
	"mode_unspecified": continuo.ChoiceAuto,
}

// toolRef names a tool in the choice of tools.
type toolRef struct {
	Type        string `json:"type"`
	Name        string `json:"name"`
	ServerLabel string `json:"server_label"` // of the type mcp; without a name all tools of the server are meant
	Function    *struct {
		Name string `json:"name"`
	} `json:"function"`
}

// name is the tool's name in the log: that of a server's tool has its label before it, and ends there if all are meant.
func (t toolRef) name() string {
	switch {
	case t.Function != nil:
		return t.Function.Name
	case t.Type == typeMCP && t.ServerLabel != "":
		return t.ServerLabel + "." + t.Name
	}
	return t.Name
}

const typeMCP = "mcp"

func readChatChoice(a *Asked, value json.RawMessage) error {
	var wrapped struct {
		Allowed json.RawMessage `json:"allowed_tools"`
	}
	if json.Unmarshal(value, &wrapped) == nil && wrapped.Allowed != nil {
		return readAllowed(a, wrapped.Allowed)
	}
	return readChoice(a, value)
}

func readResponsesChoice(a *Asked, value json.RawMessage) error {
	var choice toolRef
	if json.Unmarshal(value, &choice) == nil && choice.Type == "allowed_tools" {
		return readAllowed(a, value)
	}
	return readChoice(a, value)
}

// readChoice reads the name of a mode, or one function.
func readChoice(a *Asked, value json.RawMessage) error {
	if text, ok := rawjson.String(value); ok {
		mode, known := modes[text]
		if !known {
			return fmt.Errorf("must be none, auto, required or an object, not %.100s", value)
		}
		a.choose(mode)
		return nil
	}
	var choice toolRef
	if err := json.Unmarshal(value, &choice); err != nil || choice.Type == "" {
		return fmt.Errorf("must be none, auto, required or an object that names a tool, not %s", messages.Kind(value))
	}
	if choice.Type != "function" && choice.Type != typeMCP {
		return errNoCounterpart
	}
	if choice.name() == "" {
		return errors.New("must name a function, or the server_label of a tool of the type mcp")
	}
	a.choose(continuo.ChoiceRequired, choice.name())
	return nil
}

// readAllowed reads a list of the only tools that may be called.
func readAllowed(a *Asked, value json.RawMessage) error {
	var allowed struct {
		Mode  string    `json:"mode"`
		Tools []toolRef `json:"tools"`
	}
	mode, known := "", false
	if json.Unmarshal(value, &allowed) == nil {
		mode, known = modes[allowed.Mode]
	}
	if !known || len(allowed.Tools) == 0 {
		return errors.New("allowed_tools must have a mode, auto or required, and a list of tools")
	}
	var names []string
	for _, tool := range allowed.Tools {
		if tool.name() == "" {
			return errNoCounterpart
		}
		names = append(names, tool.name())
	}
	a.choose(mode, names...)
	return nil
}

func readAnthropicChoice(a *Asked, value json.RawMessage) error {
	var choice struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		NoBatch bool   `json:"disable_parallel_tool_use"`
	}
	if json.Unmarshal(value, &choice) != nil {
		return fmt.Errorf("must be an object with a type, not %s", messages.Kind(value))
	}
	if choice.NoBatch {
		a.Sampling.ParallelToolCalls = new(false)
		a.Names["parallel_tool_calls"] = "tool_choice.disable_parallel_tool_use"
	}
	mode, known := modes[choice.Type]
	switch {
	case choice.Type == "tool" && choice.Name != "":
		a.choose(continuo.ChoiceRequired, choice.Name)
	case known && choice.Type != "required":
		a.choose(mode)
	default:
		return errors.New("must have the type auto, any, none, or tool with a name")
	}
	return nil
}

func readGeminiChoice(a *Asked, value json.RawMessage) error {
	var config struct {
		Mode       string   `json:"mode"`
		Allowed    []string `json:"allowedFunctionNames"`
		AllowedOld []string `json:"allowed_function_names"`
	}
	mode, known := continuo.ChoiceAuto, true
	if json.Unmarshal(value, &config) != nil {
		return fmt.Errorf("must be an object with a mode, not %s", messages.Kind(value))
	}
	if config.Mode != "" {
		mode, known = modes[strings.ToLower(config.Mode)]
	}
	if !known {
		return errors.New("must have the mode AUTO, ANY, NONE or VALIDATED")
	}
	if names := append(config.Allowed, config.AllowedOld...); mode != continuo.ChoiceAuto || len(names) > 0 {
		a.choose(mode, names...)
	}
	return nil
}

// readThinking reads how much a model of Anthropic thinks.
func readThinking(a *Asked, value json.RawMessage) error {
	var thinking struct {
		Type   string          `json:"type"`
		Budget json.RawMessage `json:"budget_tokens"`
	}
	if json.Unmarshal(value, &thinking) != nil {
		return fmt.Errorf("must be an object with a type, not %s", messages.Kind(value))
	}
	switch {
	case thinking.Type == "enabled" && thinking.Budget != nil:
		if err := readBudget(a, thinking.Budget); err != nil {
			return fmt.Errorf("budget_tokens %w", err)
		}
	case thinking.Type == "disabled":
		return errNoCounterpart // a model without reasoning refuses to be told not to reason
	case thinking.Type != "adaptive" && thinking.Type != "enabled":
		return errors.New("must have the type enabled, adaptive or disabled")
	}
	return nil
}

// readAnthropicTier reads Anthropic's tier; standard_only is the one that others call default.
func readAnthropicTier(a *Asked, value json.RawMessage) error {
	tier, ok := rawjson.String(value)
	if !ok {
		return fmt.Errorf("must be a string, not %s", messages.Kind(value))
	}
	if a.Sampling.ServiceTier = tier; tier == "standard_only" {
		a.Sampling.ServiceTier = "default"
	}
	return nil
}

func readChatFormat(a *Asked, value json.RawMessage) error {
	var format struct {
		Type       string          `json:"type"`
		JSONSchema json.RawMessage `json:"json_schema"`
	}
	if json.Unmarshal(value, &format) != nil {
		return fmt.Errorf("must be an object with a type, not %s", messages.Kind(value))
	}
	return readFormat(a, format.Type, format.JSONSchema)
}

func readResponsesFormat(a *Asked, value json.RawMessage) error {
	var format toolRef
	if json.Unmarshal(value, &format) != nil {
		return fmt.Errorf("must be an object with a type, not %s", messages.Kind(value))
	}
	return readFormat(a, format.Type, value)
}

func readAnthropicFormat(a *Asked, value json.RawMessage) error { return readResponsesFormat(a, value) }

// readFormat reads the form of an answer: of the type json_schema, described has a name and a schema.
func readFormat(a *Asked, kind string, described json.RawMessage) error {
	switch kind {
	case "text":
		return nil
	case "json_object":
		a.Answer = &Answer{}
		return nil
	case "json_schema":
	default:
		return errNoCounterpart
	}
	var schema struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
		Strict *bool           `json:"strict"`
	}
	if json.Unmarshal(described, &schema) != nil || rawjson.IsNull(schema.Schema) {
		return errors.New("of the type json_schema must have a schema")
	}
	a.Answer = &Answer{Name: schema.Name, Schema: schema.Schema, Strict: schema.Strict}
	return nil
}

func readMimeType(a *Asked, value json.RawMessage) error {
	if kind, _ := rawjson.String(value); kind != "application/json" {
		return errNoCounterpart
	}
	if a.Answer == nil {
		a.Answer = &Answer{}
	}
	return nil
}

func readJSONSchema(a *Asked, value json.RawMessage) error {
	a.Answer = &Answer{Schema: value}
	return nil
}

func readOpenAPISchema(a *Asked, value json.RawMessage) error {
	a.Answer = &Answer{Schema: jsonSchema(value)}
	return nil
}
