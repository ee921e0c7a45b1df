// Package upstream is what the HTTP clients of all vendors share: it posts a request, watches over the
// answer, and turns whatever goes wrong into a *failure.Failure that holds no secret.
package upstream

import (
	"context"
	"net/http"
	"time"
)

const (
	// DefaultIdleTimeout is how long an upstream may be silent. The official clients wait ten minutes for
	// an answer too, since models that think may take that long before the first byte.
	DefaultIdleTimeout = 10 * time.Minute

	maxErrorBody  = 64 << 10 // bytes read of an error's body
	maxJSONAnswer = 32 << 20 // bytes of an answer that does not stream
	maxMessage    = 2000     // bytes of an upstream's message that are passed on
	maxQuote      = 200      // bytes of what could not be understood that are quoted
)

// Client posts requests to one endpoint. It is not changed after it is made, and safe for concurrent use.
type Client struct {
	// BaseURL is where the upstream is; Path is put behind its path. A query stays.
	BaseURL, Path string
	// HTTP makes the requests; nil for a client with the default transport. Its CheckRedirect is not used:
	// redirects are refused, because keys must not follow them.
	HTTP *http.Client
	// Key gives the API key for each request; with nil, or for an empty key, none is sent.
	Key func(context.Context) (string, error)
	// SetKey puts the key into the header.
	SetKey func(header http.Header, key string)
	// Standing headers are sent with each request; they are no secret.
	Standing map[string]string
	// Headers are sent with each request and win over all others. Their values stay out of errors.
	Headers map[string]string
	// IdleTimeout is how long the upstream may be silent; 0 for DefaultIdleTimeout.
	IdleTimeout time.Duration
	// ConnectTimeout is how long it may take to have a connection: the name, TCP and TLS together; 0 leaves
	// it to HTTP.
	ConnectTimeout time.Duration
}
