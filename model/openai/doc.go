// Package openai is the client of OpenAI's chat completions API and of the many compatible servers.
//
// It accepts what they send in practice: streams with and without a last [DONE], a plain JSON answer to a
// streaming request, usage in a chunk of its own or in none, calls whose id or index is missing, thinking in
// reasoning_content or reasoning, errors of many shapes. A message's additional members (reasoning_details,
// extra_content and similar) are merged into the vendor data of the answer: one JSON object of members for
// the assistant message; a call's additional members stay with the call. A refusal is ordinary text.
package openai

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
	// BaseURL is the upstream's URL; "/chat/completions" is appended to its path, and a query is kept.
	// Default DefaultBaseURL.
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

// Model is an upstream that speaks chat completions. It is safe for concurrent use.
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
			Protocol: model.ProtocolOpenAIChat, ContextWindow: options.ContextWindow, Forwards: true,
		},
		client: upstream.Client{
			BaseURL: cmp.Or(options.BaseURL, DefaultBaseURL), Path: "chat/completions",
			HTTP: options.HTTPClient, Key: key, SetKey: setBearer,
			Headers: options.Headers, IdleTimeout: options.IdleTimeout, ConnectTimeout: options.ConnectTimeout,
		},
	}
}

func setBearer(header http.Header, key string) { header.Set("Authorization", "Bearer "+key) }

// Info describes the model.
func (m *Model) Info() model.Info { return m.info }
