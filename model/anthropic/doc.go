// Package anthropic is the client of Anthropic's Messages API and of servers that speak it.
//
// Text, thinking and calls of the caller's tools are told as they arrive. Everything else that a
// message can hold (redacted thinking, server tools and their results, citations, compaction) is only in
// the vendor data {"content": [blocks]}: the blocks as they came, in their order, for the renderer to
// give back unchanged. It is left out when it would say nothing more than text and calls do. After a
// broken stream it holds the blocks that are whole and the text that had come.
//
// Pitfalls: text blocks on both sides of another block are told with a blank line between them, since
// they are separate remarks; text blocks next to each other are pieces of one sentence and are not.
// Thinking blocks are always told apart so; with several of them the entry keeps no signature.
// A tool_use whose input is no JSON (it was cut off by the token limit) has {"INVALID_JSON": text} as
// input in the vendor data, which is how Anthropic's documentation says to give it back.
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

// Options says which upstream to talk to. With the zero value it is Anthropic, without a key.
type Options struct {
	// BaseURL is where the upstream is; "/v1/messages" is put behind its path, a query stays.
	// Default DefaultBaseURL.
	BaseURL string
	// APIKey is sent as x-api-key. Default none.
	APIKey string
	// APIKeyFunc gives the key for each request, in place of APIKey. Default none.
	APIKeyFunc func(context.Context) (string, error)
	// Name is the upstream's name for the model, as Info tells it; the request's body is not looked at.
	Name string
	// Provider is who answers, the key of vendor data. Default "anthropic".
	Provider string
	// ContextWindow is the model's, in tokens. Default 0, not known.
	ContextWindow int
	// HTTPClient makes the requests; its CheckRedirect is not used, as redirects are refused. A Timeout of
	// it would bound the whole answer. Default a client with the default transport and no timeout.
	HTTPClient *http.Client
	// Headers are sent with each request and win over the client's own, such as anthropic-beta. Default
	// none.
	Headers map[string]string
	// IdleTimeout is how long the upstream may send nothing, not even a ping. Default 10 minutes.
	IdleTimeout time.Duration
	// ConnectTimeout is how long it may take to have a connection: the name, TCP and TLS together. Default as
	// HTTPClient does.
	ConnectTimeout time.Duration
}

// Model is an upstream that speaks the Messages API. It is safe for concurrent use.
type Model struct {
	info   model.Info
	client upstream.Client
}

// New makes a client. Whether the upstream can be reached is found out by the first request.
func New(options Options) *Model {
	key := options.APIKeyFunc
	if key == nil {
		key = func(context.Context) (string, error) { return options.APIKey, nil }
	}
	return &Model{
		info: model.Info{
			Provider: cmp.Or(options.Provider, "anthropic"), Name: options.Name,
			Protocol: model.ProtocolAnthropic, ContextWindow: options.ContextWindow,
		},
		client: upstream.Client{
			BaseURL: cmp.Or(options.BaseURL, DefaultBaseURL), Path: "v1/messages",
			HTTP: options.HTTPClient, Key: key, SetKey: setKey, Standing: map[string]string{"anthropic-version": Version},
			Headers: options.Headers, IdleTimeout: options.IdleTimeout, ConnectTimeout: options.ConnectTimeout,
		},
	}
}

func setKey(header http.Header, key string) { header.Set("X-Api-Key", key) }

// Info says what the model is.
func (m *Model) Info() model.Info { return m.info }
