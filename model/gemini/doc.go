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
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/upstream"
)

// DefaultBaseURL is Google's own address.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// Options configures the upstream. With the zero value it is Google, without a key.
type Options struct {
	// BaseURL is the upstream's URL; "/v1beta/models/NAME:streamGenerateContent" is appended to its path, and a query
	// is kept. Default DefaultBaseURL.
	BaseURL string
	// APIKey is sent as x-goog-api-key. Default none.
	APIKey string
	// APIKeyFunc returns the key for each request; it replaces APIKey. Default none.
	APIKeyFunc func(context.Context) (string, error)
	// Name is the upstream's name of the model, with or without "models/".
	Name string
	// Provider names the provider; it is the key of vendor data. Default "google".
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

// Model is an upstream that speaks the Gemini API. It is safe for concurrent use.
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
			Provider: cmp.Or(options.Provider, "google"), Name: options.Name,
			Protocol: model.ProtocolGemini, ContextWindow: options.ContextWindow, Forwards: true,
		},
		client: upstream.Client{
			BaseURL: streaming(cmp.Or(options.BaseURL, DefaultBaseURL)), Path: pathOf(options.Name),
			HTTP: options.HTTPClient, Key: key, SetKey: setKey,
			Headers: options.Headers, IdleTimeout: options.IdleTimeout, ConnectTimeout: options.ConnectTimeout,
		},
	}
}

func setKey(header http.Header, key string) { header.Set("X-Goog-Api-Key", key) }

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

// Info describes the model.
func (m *Model) Info() model.Info { return m.info }
