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
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// DefaultBaseURL is Anthropic's own address.
const DefaultBaseURL = "https://api.anthropic.com"

// Version is the value of the anthropic-version header, unless Options.Headers gives another.
const Version = "2023-06-01"

// Options configures the upstream. With the zero value it is Anthropic, without a key.
type Options struct {
	// BaseURL is the upstream's URL; "/v1/messages" is appended to its path, and a query is kept. Default
	// DefaultBaseURL.
	BaseURL string
	// APIKey is sent as x-api-key. Default none.
	APIKey string
	// APIKeyFunc returns the key for each request; it replaces APIKey. Default none.
	APIKeyFunc func(context.Context) (string, error)
	// Name is the upstream's name of the model, returned by Info; the request's body is not inspected.
	Name string
	// Provider names the provider; it is the key of vendor data. Default "anthropic".
	Provider string
	// ContextWindow is the model's context window in tokens. Default 0, unknown.
	ContextWindow int
	// HTTPClient makes the requests; its CheckRedirect is not used, as redirects are refused. A Timeout of
	// it would bound the whole answer. Default a client with the default transport and no timeout.
	HTTPClient *http.Client
	// Headers are sent with each request and override the client's own, such as anthropic-beta. Default none.
	Headers map[string]string
	// IdleTimeout bounds how long the upstream may send nothing, not even a ping. Default 10 minutes.
	IdleTimeout time.Duration
	// ConnectTimeout bounds how long connecting may take: DNS, TCP and TLS together. Default as HTTPClient
	// does.
	ConnectTimeout time.Duration
}

// Model is an upstream that speaks the Messages API. It is safe for concurrent use.
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
			Provider: cmp.Or(options.Provider, "anthropic"), Name: options.Name,
			Protocol: model.ProtocolAnthropic, ContextWindow: options.ContextWindow, Forwards: true,
		},
		client: upstream.Client{
			BaseURL: cmp.Or(options.BaseURL, DefaultBaseURL), Path: "v1/messages",
			HTTP: options.HTTPClient, Key: key, SetKey: setKey, DefaultHeaders: map[string]string{"anthropic-version": Version},
			Headers: options.Headers, IdleTimeout: options.IdleTimeout, ConnectTimeout: options.ConnectTimeout,
		},
	}
}

func setKey(header http.Header, key string) { header.Set("X-Api-Key", key) }

// Info describes the model.
func (m *Model) Info() model.Info { return m.info }
