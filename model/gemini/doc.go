// Package gemini is the client of the Gemini API and of compatible servers.
//
// Text, thoughts and calls are yielded as they arrive; a call arrives whole. The parts of the answer are vendor data,
// which the renderer sends back unchanged: thought signatures on the parts where they arrived, ids of calls, code that
// the provider ran, unknown parts; see package internal/wire/gemini. They are left out when they would add nothing to a
// text and calls. Only pieces of a text without a signature are joined. After a broken stream they are those received.
//
// Pitfalls: the API has no last event: an answer is complete when a piece of it had a finishReason, and a stream that
// ends before is an error. A refused prompt is an answer without candidates. The name of the model is in the path, and
// requests always stream, since a body does not say so. A reason such as MALFORMED_FUNCTION_CALL is a failed answer.
package gemini

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// DefaultBaseURL is Google's own address.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// Options configures the client.
type Options = model.ClientOptions

// New returns the client of an upstream that speaks the Gemini API. It is safe for concurrent use, and does
// not connect before the first request.
func New(options Options) model.Model {
	options.BaseURL = streaming(cmp.Or(options.BaseURL, DefaultBaseURL))
	return upstream.New(options, upstream.Protocol{
		Name: model.ProtocolGemini, Vendor: "google", BaseURL: DefaultBaseURL, Path: pathOf(options.Name), Key: upstream.KeyHeader{Name: "X-Goog-Api-Key"},
		Begin: func(sink *upstream.Sink) upstream.Answer { return newAnswer(sink) },
	})
}

// streaming adds the form of the stream to a base URL. An invalid one is reported by the first request.
func streaming(base string) string {
	endpoint, err := url.Parse(base)
	if err != nil {
		return base
	}
	query := endpoint.Query()
	query.Set("alt", "sse")
	endpoint.RawQuery = query.Encode()
	return endpoint.String()
}

// pathOf returns the path of requests to a model.
func pathOf(name string) string {
	if !strings.Contains(name, "/") {
		name = "models/" + name
	}
	return "v1beta/" + name + ":streamGenerateContent"
}
