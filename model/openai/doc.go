// Package openai is the client of OpenAI's chat completions API and of the many compatible servers.
//
// It accepts what they send in practice: streams with and without a last [DONE], a plain JSON answer to a
// streaming request, usage in a chunk of its own or in none, calls whose id or index is missing, thinking in
// reasoning_content or reasoning, errors of many shapes. A message's additional members (reasoning_details,
// extra_content and similar) are merged into the vendor data of the answer: one JSON object of members for
// the assistant message; a call's additional members stay with the call. A refusal is ordinary text.
package openai

import (
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// DefaultBaseURL is OpenAI's own address.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options configures the client.
type Options = model.ClientOptions

// New returns the client of an upstream that speaks chat completions. It is safe for concurrent use, and does
// not connect before the first request.
func New(options Options) model.Model {
	return upstream.New(options, upstream.Protocol{
		Name: model.ProtocolOpenAIChat, Vendor: "openai", BaseURL: DefaultBaseURL, Path: "chat/completions", Key: upstream.Bearer,
		Begin: func(sink *upstream.Sink) upstream.Answer { return newAnswer(sink) },
	})
}
