package upstream

import (
	"net/http"
	"strings"
)

// overflowCodes are the error types and codes of requests that are larger than the model's window: those of
// OpenAI and compatible servers, Anthropic (413), llama.cpp.
var overflowCodes = []string{"context_length", "request_too_large", "exceed_context_size"}

// overflowTexts are parts of error messages with that meaning, of upstreams without a code for it.
var overflowTexts = []string{
	"maximum context length",               // OpenAI, vLLM, DeepSeek, OpenRouter, Mistral
	"maximum prompt length",                // xAI
	"prompt is too long",                   // Anthropic
	"exceed context limit",                 // Anthropic, with max_tokens
	"exceeds the maximum number of tokens", // Gemini
	"input is too long",                    // Bedrock
	"exceeds the available context size",   // llama.cpp
	"greater than the context length",      // LM Studio
	"too large for model with",             // Mistral
	"reduce the length of the messages",    // Groq
	"max_new_tokens` must be",              // text-generation-inference
}

// isOverflow reports whether an error means that the request is larger than the model's window.
func (m message) isOverflow(status int) bool {
	contains := func(text string, parts []string) bool {
		for _, part := range parts {
			if strings.Contains(strings.ToLower(text), part) {
				return true
			}
		}
		return false
	}
	switch status {
	case http.StatusRequestEntityTooLarge:
		return true
	case 0, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return contains(strings.Join(m.codes, " "), overflowCodes) || contains(m.text, overflowTexts)
	}
	return false
}
