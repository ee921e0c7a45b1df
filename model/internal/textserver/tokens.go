package textserver

import "encoding/json"

// Counted is the part of a response that says how many tokens the request had: usage as OpenAI, Jina, vLLM and llama.cpp have
// it, meta as Cohere. Some servers do not say it.
type Counted struct {
	Usage json.RawMessage `json:"usage"`
	Meta  json.RawMessage `json:"meta"`
}

// mostTokens is more than any request has.
const mostTokens = 1 << 31

// Tokens is the number; 0 where the response does not say it, or says what cannot be.
func (c Counted) Tokens() int {
	var usage struct {
		Total  float64 `json:"total_tokens"`
		Prompt float64 `json:"prompt_tokens"`
		Input  float64 `json:"input_tokens"`
	}
	var meta struct {
		Tokens struct {
			Input float64 `json:"input_tokens"`
		} `json:"tokens"`
		Billed struct {
			Input float64 `json:"input_tokens"`
		} `json:"billed_units"`
	}
	_, _ = json.Unmarshal(c.Usage, &usage), json.Unmarshal(c.Meta, &meta) // what is of another form says nothing
	for _, tokens := range []float64{usage.Total, usage.Prompt, usage.Input, meta.Tokens.Input, meta.Billed.Input} {
		if tokens >= 1 && tokens <= mostTokens {
			return int(tokens)
		}
	}
	return 0
}
