package model

import (
	"context"
	"net/http"
	"time"
)

// ClientOptions configures the HTTP client of an upstream, in the packages openai, responses, anthropic and gemini. With the
// zero value it is the vendor itself, without a key.
type ClientOptions struct {
	// BaseURL is the upstream's URL; the protocol's path is appended to its path, and a query is kept. Default the
	// package's DefaultBaseURL.
	BaseURL string
	// APIKey is sent in the header that the protocol has for it. Default none.
	APIKey string
	// APIKeyFunc returns the key for each request; it replaces APIKey. Default none.
	APIKeyFunc func(context.Context) (string, error)
	// KeyNote says where the key comes from, or that there is none, such as "the key in OPENAI_API_KEY was sent": the error of a
	// request that the upstream refuses with 401 or 403 ends with it. It must not hold the key. Default none.
	KeyNote string
	// Name is the upstream's name of the model, returned by Info. Only Gemini's requests are sent to it: in the other
	// protocols the request's body names a model, and is not inspected.
	Name string
	// Provider names the provider; it is the key of vendor data. Default the protocol's vendor: "openai", "anthropic" or
	// "google".
	Provider string
	// ContextWindow is the model's context window in tokens. Default 0, unknown.
	ContextWindow int
	// HTTPClient makes the requests; its CheckRedirect is not used, as redirects are refused: keys must not be sent along.
	// A Timeout of it would bound the whole answer. Default a client with the default transport and no timeout.
	HTTPClient *http.Client
	// Headers are sent with each request and override the client's own. Their values do not appear in errors. Default none.
	Headers map[string]string
	// IdleTimeout bounds how long the upstream may send nothing, not even a comment or a ping. Default 10 minutes.
	IdleTimeout time.Duration
	// ConnectTimeout bounds how long connecting may take: DNS, TCP and TLS together. Default as HTTPClient
	// does.
	ConnectTimeout time.Duration
}
