// Package anthropic is the client of Anthropic's Messages API and of compatible servers.
//
// Text, thinking and calls of the caller's tools are yielded as they arrive. Everything else that a message
// can hold (redacted thinking, server tools and their results, citations, compaction) is only in the vendor
// data {"content": [blocks]}: the received blocks in order, which the renderer sends back unchanged. It is
// left out when it would add nothing to text and calls. After a broken stream it holds the complete blocks
// and the text received.
//
// Pitfalls: text blocks on both sides of another block are separated by a blank line, since they are separate
// remarks; adjacent text blocks are pieces of one sentence and are not. Thinking blocks are always separated;
// with several of them the entry keeps no signature. A tool_use whose input is invalid JSON (cut off by the
// token limit) has {"INVALID_JSON": text} as input in the vendor data, which is how Anthropic's documentation
// says to send it back.
package anthropic

import (
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// DefaultBaseURL is Anthropic's own address.
const DefaultBaseURL = "https://api.anthropic.com"

// Version is the value of the anthropic-version header, unless [Options] has another in Headers.
const Version = "2023-06-01"

// Options configures the client.
type Options = model.ClientOptions

// New returns the client of an upstream that speaks the Messages API. It is safe for concurrent use, and does
// not connect before the first request.
func New(options Options) model.Model {
	return upstream.New(options, upstream.Protocol{
		Name: model.ProtocolAnthropic, Vendor: "anthropic", BaseURL: DefaultBaseURL, Path: "v1/messages", Key: upstream.KeyHeader{Name: "X-Api-Key"},
		Headers: map[string]string{"Anthropic-Version": Version},
		Begin:   func(sink *upstream.Sink) upstream.Answer { return newAnswer(sink) },
	})
}
