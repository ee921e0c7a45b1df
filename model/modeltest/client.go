package modeltest

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
)

// countingClient counts the answers that were opened and closed.
type countingClient struct {
	*http.Client
	transport      http.RoundTripper
	opened, closed atomic.Int64
}

func newCountingClient(transport http.RoundTripper) *countingClient {
	c := &countingClient{transport: transport}
	c.Client = &http.Client{Transport: c}
	return c
}

// RoundTrip passes the request on.
func (c *countingClient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	c.opened.Add(1)
	response.Body = &countedBody{ReadCloser: response.Body, closed: &c.closed}
	return response, nil
}

// check fails the test when an answer was left open, or when not exactly one request was made.
func (c *countingClient) check(t *testing.T) {
	t.Helper()
	if opened, closed := c.opened.Load(), c.closed.Load(); opened != closed || opened > 1 {
		t.Errorf("%d answers were opened and %d closed, want at most one and no difference", opened, closed)
	}
}

type countedBody struct {
	io.ReadCloser
	done   atomic.Bool
	closed *atomic.Int64
}

// Close closes the body and counts it once.
func (b *countedBody) Close() error {
	if !b.done.Swap(true) {
		b.closed.Add(1)
	}
	return b.ReadCloser.Close()
}
