// Package upstream is the code that the HTTP clients of all vendors share: it posts a request, enforces time
// limits on the answer, and turns any error into a *failure.Failure without secrets.
package upstream

import (
	"context"
	"net/http"
	"time"
)

const (
	// DefaultIdleTimeout is how long an upstream may be silent. The official clients also wait ten minutes
	// for an answer, since thinking models may take that long before the first byte.
	DefaultIdleTimeout = 10 * time.Minute

	maxErrorBody  = 64 << 10 // bytes read of an error's body
	maxJSONAnswer = 32 << 20 // bytes of an answer that does not stream
	maxMessage    = 2000     // bytes of an upstream's message that are passed on
	maxQuote      = 200      // bytes quoted of data that could not be parsed
)

// Client posts requests to one endpoint. It is immutable, and safe for concurrent use.
type Client struct {
	// BaseURL is the upstream's URL; Path is appended to its path. A query is kept.
	BaseURL, Path string
	// HTTP makes the requests; nil for a client with the default transport. Its CheckRedirect is not used:
	// redirects are refused, because keys must not be sent along.
	HTTP *http.Client
	// Key returns the API key for each request; with nil, or for an empty key, none is sent.
	Key func(context.Context) (string, error)
	// SetKey puts the key into the header.
	SetKey func(header http.Header, key string)
	// DefaultHeaders are sent with each request; they are not secret.
	DefaultHeaders map[string]string
	// Headers are sent with each request and override all others. Their values do not appear in errors.
	Headers map[string]string
	// IdleTimeout is how long the upstream may be silent; 0 for DefaultIdleTimeout.
	IdleTimeout time.Duration
	// ConnectTimeout bounds how long connecting may take: DNS, TCP and TLS together; 0 leaves it to HTTP.
	ConnectTimeout time.Duration
}
