// Package upstream is the code that the HTTP clients of all vendors share: it posts a request, enforces time
// limits on the answer, and turns any error into a *failure.Failure without secrets.
package upstream

import (
	"cmp"
	"context"
	"time"

	"github.com/continuo-log/continuo/model"
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

// Protocol is what sets the client of one wire format apart.
type Protocol struct {
	// Name is the wire format, and Vendor the provider whose it is.
	Name, Vendor string
	// BaseURL is the vendor's own address; Path is appended to the path of the base URL.
	BaseURL, Path string
	// Key is where the API key is sent.
	Key KeyHeader
	// Headers are sent with each request, unless it has others; they are not secret.
	Headers map[string]string
	// Begin makes an answer that yields to a sink.
	Begin func(*Sink) Answer
}

// KeyHeader is the header of a key, and what stands before the key in it.
type KeyHeader struct{ Name, Prefix string }

// Bearer sends a key as OpenAI's API expects it.
var Bearer = KeyHeader{Name: "Authorization", Prefix: "Bearer "}

// Model is an upstream that speaks one protocol. It is immutable, and safe for concurrent use.
type Model struct {
	options  model.ClientOptions
	protocol Protocol
}

// New returns a client. It does not connect before the first request.
func New(options model.ClientOptions, protocol Protocol) *Model {
	options.BaseURL = cmp.Or(options.BaseURL, protocol.BaseURL)
	options.IdleTimeout = cmp.Or(options.IdleTimeout, DefaultIdleTimeout)
	return &Model{options: options, protocol: protocol}
}

// Info describes the model.
func (m *Model) Info() model.Info {
	return model.Info{
		Provider: cmp.Or(m.options.Provider, m.protocol.Vendor), Name: m.options.Name, Protocol: m.protocol.Name,
		ContextWindow: m.options.ContextWindow, Forwards: true,
	}
}

// key returns the API key for a request, "" if none is sent.
func (m *Model) key(ctx context.Context) (string, error) {
	if m.options.APIKeyFunc != nil {
		return m.options.APIKeyFunc(ctx)
	}
	return m.options.APIKey, nil
}
