// Package textserver asks servers that compute something of texts, embeddings or an order, in one request and one answer of JSON.
// Callers can do without: after Failures failed requests in a row no request is sent for Cooldown, so that they fail at once.
package textserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Options configures a client.
type Options struct {
	Name        string        // of the breaker, in its errors
	URL         string        // of the requests
	Key         string        // "" sends none
	KeyNote     string        // says where the key comes from, as model.Options has it
	MaxResponse int64         // bytes of a response that are read
	Timeout     time.Duration // bounds a request
	// Failures and Cooldown: see the package comment. Defaults 3 and 30 s.
	Failures int
	Cooldown time.Duration
	// HTTP sends the requests. Default http.DefaultClient.
	HTTP *http.Client
	// IsHealthy reports whether a failed request says nothing against the server. A cancelled one never does.
	IsHealthy func(error) bool
}

// Client sends requests, and decodes each response to an R. It is safe for concurrent use.
type Client[R any] struct {
	options Options
	breaker *gobreaker.CircuitBreaker[R]
}

// New makes a client.
func New[R any](options Options) *Client[R] {
	options.Failures = cmp.Or(options.Failures, 3)
	options.Cooldown = cmp.Or(options.Cooldown, 30*time.Second)
	if options.HTTP == nil {
		options.HTTP = http.DefaultClient
	}
	return &Client[R]{options, gobreaker.NewCircuitBreaker[R](gobreaker.Settings{
		Name: options.Name, Timeout: options.Cooldown,
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= uint32(options.Failures) },
		IsSuccessful: func(err error) bool {
			return err == nil || errors.Is(err, context.Canceled) || options.IsHealthy != nil && options.IsHealthy(err)
		},
	})}
}

// StatusError is a response with another status than 200.
type StatusError struct {
	Status int
	Text   string // the beginning of the response
	Note   string // which key was refused; "" where none was, or where that is not known
}

func (e *StatusError) Error() string {
	if e.Note != "" {
		return fmt.Sprintf("status %d: %q (%s)", e.Status, e.Text, e.Note)
	}
	return fmt.Sprintf("status %d: %q", e.Status, e.Text)
}

// maxError bounds the bytes of a refusal that are read.
const maxError = 300

// Post sends a request as JSON, and decodes the response. An error of decode counts as a failure of the server.
func (c *Client[R]) Post(ctx context.Context, request any, decode func(io.Reader) (R, error)) (R, error) {
	return c.breaker.Execute(func() (R, error) { return c.post(ctx, request, decode) })
}

func (c *Client[R]) post(ctx context.Context, request any, decode func(io.Reader) (R, error)) (none R, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return none, err
	}
	asked, err := http.NewRequestWithContext(ctx, http.MethodPost, c.options.URL, bytes.NewReader(body))
	if err != nil {
		return none, err
	}
	asked.Header.Set("Content-Type", "application/json")
	if c.options.Key != "" {
		asked.Header.Set("Authorization", "Bearer "+c.options.Key)
	}
	answer, err := c.options.HTTP.Do(asked)
	if err != nil {
		return none, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, maxError))
		refusal := &StatusError{Status: answer.StatusCode, Text: string(text)}
		if refusal.Status == http.StatusUnauthorized || refusal.Status == http.StatusForbidden {
			refusal.Note = c.options.KeyNote
		}
		return none, refusal
	}
	return decode(io.LimitReader(answer.Body, c.options.MaxResponse))
}
