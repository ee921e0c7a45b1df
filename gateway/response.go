package gateway

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// responseEcho is what a response repeats of its request. It is stored with the request's first entry.
type responseEcho struct {
	Model              string            `json:"model,omitempty"`
	PreviousResponseID string            `json:"previous_response_id,omitempty"`
	Conversation       string            `json:"conversation,omitempty"`
	Instructions       string            `json:"instructions,omitempty"`
	Tools              []json.RawMessage `json:"tools,omitempty"`
	ToolChoice         json.RawMessage   `json:"tool_choice,omitempty"`
	Truncation         string            `json:"truncation,omitempty"`
	ParallelToolCalls  *bool             `json:"parallel_tool_calls,omitempty"`
	Text               json.RawMessage   `json:"text,omitempty"`
	TopP               *float64          `json:"top_p,omitempty"`
	PresencePenalty    *float64          `json:"presence_penalty,omitempty"`
	FrequencyPenalty   *float64          `json:"frequency_penalty,omitempty"`
	TopLogprobs        *int              `json:"top_logprobs,omitempty"`
	Temperature        *float64          `json:"temperature,omitempty"`
	Reasoning          json.RawMessage   `json:"reasoning,omitempty"`
	MaxOutputTokens    int               `json:"max_output_tokens,omitempty"`
	MaxToolCalls       *int              `json:"max_tool_calls,omitempty"`
	Store              *bool             `json:"store,omitempty"`
	Background         bool              `json:"background,omitempty"`
	ServiceTier        string            `json:"service_tier,omitempty"`
	Metadata           json.RawMessage   `json:"metadata,omitempty"`
	SafetyIdentifier   *string           `json:"safety_identifier,omitempty"`
	PromptCacheKey     *string           `json:"prompt_cache_key,omitempty"`
	// MCP are the MCP servers of the request that run here.
	MCP []mcpListing `json:"gateway_mcp,omitempty"`
}

// stored reports whether the response can be retrieved and continued.
func (e *responseEcho) stored() bool { return e.Store == nil || *e.Store }

// echoMember is the member of an entry's vendor data in which its request is stored.
const echoMember = "gateway"

// withEcho returns entries whose first one has the request.
func withEcho(entries []continuo.Entry, echo *responseEcho) []continuo.Entry {
	if len(entries) == 0 {
		return entries
	}
	entries = slices.Clone(entries)
	entries[0].Vendor = withVendor(entries[0].Vendor, echoMember, rawjson.MustMarshal(echo))
	return entries
}

// withVendor returns vendor data with a member.
func withVendor(vendor map[string]json.RawMessage, name string, data json.RawMessage) map[string]json.RawMessage {
	with := map[string]json.RawMessage{}
	maps.Copy(with, vendor)
	with[name] = data
	return with
}

// echoOf returns the request that is stored with an entry; ok is false where there is none.
func echoOf(entry *continuo.Entry) (*responseEcho, bool) {
	data, ok := entry.Vendor[echoMember]
	if !ok {
		return nil, false
	}
	var echo responseEcho
	return &echo, json.Unmarshal(data, &echo) == nil
}

// wireResponse is a response with the member that the published type of a request only has.
type wireResponse struct {
	responses.Response
	Conversation *conversationRef `json:"conversation,omitempty"`
}

// conversationRef names a response's conversation.
type conversationRef struct {
	ID string `json:"id"`
}

// response is a response with what its request asked for. Members that the request left out have OpenAI's defaults.
func (e *responseEcho) response(id string, created float64) *wireResponse {
	one, zero, tier := 1.0, 0.0, cmp.Or(e.ServiceTier, "default")
	topLogprobs := 0
	response := &wireResponse{Response: responses.Response{
		ID: id, Object: "response", CreatedAt: math.Floor(created), Status: responses.StatusInProgress, Model: e.Model, Instructions: json.RawMessage("null"),
		Output: []json.RawMessage{}, Tools: shownTools(e.Tools), ToolChoice: e.ToolChoice, Truncation: cmp.Or(e.Truncation, "disabled"), ParallelToolCalls: true,
		Text: e.Text, TopP: cmp.Or(e.TopP, &one), PresencePenalty: cmp.Or(e.PresencePenalty, &zero), FrequencyPenalty: cmp.Or(e.FrequencyPenalty, &zero),
		TopLogprobs: cmp.Or(e.TopLogprobs, &topLogprobs), Temperature: cmp.Or(e.Temperature, &one), Reasoning: e.Reasoning, MaxToolCalls: e.MaxToolCalls,
		Store: e.stored(), Background: e.Background, ServiceTier: &tier, Metadata: e.Metadata, SafetyIdentifier: e.SafetyIdentifier, PromptCacheKey: e.PromptCacheKey,
	}}
	if e.Instructions != "" {
		response.Instructions = rawjson.MustMarshal(e.Instructions)
	}
	if e.PreviousResponseID != "" {
		response.PreviousResponseID = &e.PreviousResponseID
	}
	if e.Conversation != "" {
		response.Conversation = &conversationRef{e.Conversation}
	}
	if e.ParallelToolCalls != nil {
		response.ParallelToolCalls = *e.ParallelToolCalls
	}
	if e.MaxOutputTokens > 0 {
		response.MaxOutputTokens = &e.MaxOutputTokens
	}
	for member, usual := range map[*json.RawMessage]string{
		&response.ToolChoice: `"auto"`, &response.Text: `{"format":{"type":"text"}}`, &response.Reasoning: `{"effort":null,"summary":null}`, &response.Metadata: "{}",
	} {
		if rawjson.IsNull(*member) {
			*member = json.RawMessage(usual)
		}
	}
	return response
}

// shownTools are the tools of a response: functions have all of their members there.
func shownTools(asked []json.RawMessage) []json.RawMessage {
	tools := make([]json.RawMessage, len(asked))
	for i, raw := range asked {
		tools[i] = raw
		tool, err := rawjson.ParseObject(raw)
		if kind, _ := rawjson.String(tool.Get("type")); err != nil || kind != "function" {
			continue
		}
		for _, member := range []string{"description", "parameters", "strict"} {
			if tool.Get(member) == nil {
				tool.Set(member, json.RawMessage("null"))
			}
		}
		tools[i] = tool.Raw()
	}
	return tools
}

// end completes a response with the end of its turn. Answer is the newest answer of the turn.
func (r *wireResponse) end(answer *continuo.Entry, usage continuo.Usage, at float64) {
	r.Usage = &responses.Usage{
		InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens, TotalTokens: usage.InputTokens + usage.OutputTokens,
		InputTokensDetails:  responses.InputTokensDetails{CachedTokens: usage.CachedTokens, CacheWriteTokens: usage.CacheWriteTokens},
		OutputTokensDetails: responses.OutputTokensDetails{ReasoningTokens: usage.ReasoningTokens},
	}
	at = math.Floor(at)
	switch {
	case answer == nil:
		r.Status = responses.StatusFailed
	case answer.Error != nil && answer.Error.Reason == continuo.ReasonCancelled:
		r.Status = responses.StatusCancelled
	case answer.Error != nil:
		p := api.ModelFailed(answer.Error)
		r.Status, r.Error = responses.StatusFailed, &responses.Error{Code: responseErrorCode(answer.Error), Message: p.Message}
	default:
		r.Status = responses.StatusCompleted
		switch finishReason(answer) {
		case "length":
			r.Status, r.IncompleteDetails = responses.StatusIncomplete, &responses.IncompleteDetails{Reason: "max_output_tokens"}
		case "content_filter":
			r.Status, r.IncompleteDetails = responses.StatusIncomplete, &responses.IncompleteDetails{Reason: "content_filter"}
		}
	}
	if r.Status == responses.StatusCompleted {
		r.CompletedAt = &at
	}
}

// responseErrorCode is OpenAI's code of a failed response.
func responseErrorCode(failure *continuo.TurnError) string {
	switch failure.Reason {
	case continuo.ReasonRateLimit:
		return "rate_limit_exceeded"
	case continuo.ReasonBudget:
		return "insufficient_quota"
	case continuo.ReasonContextOverflow:
		return "context_length_exceeded"
	}
	return "server_error"
}
