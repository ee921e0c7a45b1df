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
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// DefaultBaseURL is OpenAI's own address.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options configures the upstream. With the zero value it is OpenAI, without a key.
type Options struct {
	// BaseURL is the upstream's URL; "/responses" is appended to its path, and a query is kept. Default
	// DefaultBaseURL.
	BaseURL string
	// APIKey is sent as a bearer token. Default none.
	APIKey string
	// APIKeyFunc returns the key for each request; it replaces APIKey. Default none.
	APIKeyFunc func(context.Context) (string, error)
	// Name is the upstream's name of the model, returned by Info; the request's body is not inspected.
	Name string
	// Provider names the provider; it is the key of vendor data. Default "openai".
	Provider string
	// ContextWindow is the model's context window in tokens. Default 0, unknown.
	ContextWindow int
	// HTTPClient makes the requests; its CheckRedirect is not used, as redirects are refused. A Timeout of
	// it would bound the whole answer. Default a client with the default transport and no timeout.
	HTTPClient *http.Client
	// Headers are sent with each request and override the client's own. Default none.
	Headers map[string]string
	// IdleTimeout bounds how long the upstream may send nothing, not even a comment. Default 10 minutes.
	IdleTimeout time.Duration
	// ConnectTimeout bounds how long connecting may take: DNS, TCP and TLS together. Default as HTTPClient
	// does.
	ConnectTimeout time.Duration
}

// Model is an upstream that speaks the Responses API. It is safe for concurrent use.
type Model struct {
	info   model.Info
	client upstream.Client
}

// New returns a client. It does not connect before the first request.
func New(options Options) *Model {
	key := options.APIKeyFunc
	if key == nil {
		key = func(context.Context) (string, error) { return options.APIKey, nil }
	}
	return &Model{
		info: model.Info{
			Provider: cmp.Or(options.Provider, "openai"), Name: options.Name,
			Protocol: model.ProtocolResponses, ContextWindow: options.ContextWindow, Forwards: true,
		},
		client: upstream.Client{
			BaseURL: cmp.Or(options.BaseURL, DefaultBaseURL), Path: "responses",
			HTTP: options.HTTPClient, Key: key, SetKey: setBearer,
			Headers: options.Headers, IdleTimeout: options.IdleTimeout, ConnectTimeout: options.ConnectTimeout,
		},
	}
}

func setBearer(header http.Header, key string) { header.Set("Authorization", "Bearer "+key) }

// Info describes the model.
func (m *Model) Info() model.Info { return m.info }
