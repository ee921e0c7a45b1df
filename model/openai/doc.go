// Package openai is the client of everything that speaks OpenAI's chat completions: OpenAI itself and
// the many servers that are compatible with it.
//
// It reads what they really send: streams with and without a last [DONE], a plain JSON answer where a
// stream was asked for, usage in a chunk of its own or in none, calls whose id or index is missing,
// thinking in reasoning_content or reasoning, errors of many shapes. What a server puts into a message
// besides (reasoning_details, extra_content and the like) is joined and becomes the vendor data of the
// answer: one JSON object of members for the assistant message; what it puts into a call stays with the
// call. A refusal is text like any other.
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

// Options says which upstream to talk to. With the zero value it is OpenAI, without a key.
type Options struct {
	// BaseURL is where the upstream is; "/chat/completions" is put behind its path, a query stays.
	// Default DefaultBaseURL.
	BaseURL string
	// APIKey is sent as a bearer token. Default none.
	APIKey string
	// APIKeyFunc gives the key for each request, in place of APIKey. Default none.
	APIKeyFunc func(context.Context) (string, error)
	// Name is the upstream's name for the model, as Info tells it; the request's body is not looked at.
	Name string
	// Provider is who answers, the key of vendor data. Default "openai".
	Provider string
	// ContextWindow is the model's, in tokens. Default 0, not known.
	ContextWindow int
	// HTTPClient makes the requests; its CheckRedirect is not used, as redirects are refused. A Timeout of
	// it would bound the whole answer. Default a client with the default transport and no timeout.
	HTTPClient *http.Client
	// Headers are sent with each request and win over the client's own. Default none.
	Headers map[string]string
	// IdleTimeout is how long the upstream may send nothing, not even a comment. Default 10 minutes.
	IdleTimeout time.Duration
	// ConnectTimeout is how long it may take to have a connection: the name, TCP and TLS together. Default as
	// HTTPClient does.
	ConnectTimeout time.Duration
}

// Model is an upstream that speaks chat completions. It is safe for concurrent use.
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
			Provider: cmp.Or(options.Provider, "openai"), Name: options.Name,
			Protocol: model.ProtocolOpenAIChat, ContextWindow: options.ContextWindow,
		},
		client: upstream.Client{
			BaseURL: cmp.Or(options.BaseURL, DefaultBaseURL), Path: "chat/completions",
			HTTP: options.HTTPClient, Key: key, SetKey: setBearer,
			Headers: options.Headers, IdleTimeout: options.IdleTimeout, ConnectTimeout: options.ConnectTimeout,
		},
	}
}

func setBearer(header http.Header, key string) { header.Set("Authorization", "Bearer "+key) }

// Info says what the model is.
func (m *Model) Info() model.Info { return m.info }
