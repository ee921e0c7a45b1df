// Package responses is the client of OpenAI's Responses API and of compatible servers.
//
// Text, refusals, the readable text of reasoning and calls of the caller's tools are yielded as they arrive. The whole
// items of the answer (reasoning with its encrypted content, annotations, the order of messages and calls, items of
// tools that the provider runs, items of unknown types) are vendor data, which the renderer sends back unchanged: see
// package internal/wire/responses. They are left out when they would add nothing to a text and calls. After a broken
// stream they are those that were complete.
//
// Pitfalls: a stream is complete with response.completed or response.incomplete only; its end without one of them, and
// [DONE] without one, are errors. Some servers leave out events, output_index, or the deltas of an item: what an item
// has at its end and was not yielded before is yielded then.
package responses

import (
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// DefaultBaseURL is OpenAI's own address.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options configures the client.
type Options = model.ClientOptions

// New returns the client of an upstream that speaks the Responses API. It is safe for concurrent use, and does
// not connect before the first request.
func New(options Options) model.Model {
	return upstream.New(options, upstream.Protocol{
		Name: model.ProtocolResponses, Vendor: "openai", BaseURL: DefaultBaseURL, Path: "responses", Key: upstream.Bearer,
		Begin: func(sink *upstream.Sink) upstream.Answer { return newAnswer(sink) },
	})
}
