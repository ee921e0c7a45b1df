package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/continuo-log/continuo/model/internal/failure"
	"github.com/continuo-log/continuo/model/internal/forward"
)

// Post sends body and returns the upstream's answer when its status is 200 to 299; else the error is a
// *failure.Failure. The caller must close the answer.
func (m *Model) Post(ctx context.Context, body []byte) (*Response, error) {
	call := &call{ctx: ctx, host: "the upstream"}
	request, err := m.request(ctx, call, body)
	if err != nil {
		return nil, call.failure("prepare the request", err)
	}
	call.watch(m.options.IdleTimeout)
	call.resume()
	connected := call.connecting(m.options.ConnectTimeout)
	answer, err := m.client().Do(request.WithContext(call.request))
	connected()
	call.pause()
	if err != nil {
		defer call.end()
		return nil, call.failure("post the request", err)
	}
	response := &Response{call: call, http: answer, forwarded: forward.Of(ctx)}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		defer response.Close()
		return nil, response.statusFailure()
	}
	response.answered(nil)
	return response, nil
}

func (m *Model) client() *http.Client {
	client := http.Client{}
	if m.options.HTTPClient != nil {
		client = *m.options.HTTPClient
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

func (m *Model) request(ctx context.Context, call *call, body []byte) (*http.Request, error) {
	forwarded := forward.Of(ctx)
	endpoint, err := url.Parse(m.options.BaseURL)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, invalidError{"the base URL must be an http or https address such as https://api.example.com/v1"}
	}
	call.host = endpoint.Host
	path := m.protocol.Path
	if forwarded != nil {
		path = cmp.Or(forwarded.Path, path)
		if forwarded.Query != "" || forwarded.Path != "" {
			endpoint.RawQuery = forwarded.Query
		}
	}
	request, err := http.NewRequest(http.MethodPost, endpoint.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, invalidError{err.Error()}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream, application/json")
	request.Header.Set("Accept-Encoding", "identity") // compressed streams arrive in large chunks
	request.Header.Set("User-Agent", "continuo")
	for name, value := range m.protocol.Headers {
		request.Header.Set(name, value)
	}
	client := forward.HeadersOf(ctx)
	if client != nil {
		client.Apply(request.Header)
	}
	if client != nil && client.KeepsKey {
		call.keyNote = "with the client's own credentials"
	} else {
		call.keyNote = m.options.KeyNote
		key, err := m.key(ctx)
		if err != nil {
			return nil, fmt.Errorf("get the API key: %w", err)
		}
		if key != "" {
			request.Header.Set(m.protocol.Key.Name, m.protocol.Key.Prefix+key)
			call.secrets = append(call.secrets, key)
		}
	}
	for name, value := range m.options.Headers {
		request.Header.Set(name, value)
		call.secrets = append(call.secrets, value)
	}
	return request, nil
}

// invalidError is an error in the client's configuration.
type invalidError struct{ message string }

func (e invalidError) Error() string { return e.message }

// call is one request and its answer: its context, its time limit, its secrets.
type call struct {
	ctx     context.Context // the caller's
	request context.Context // ends with ctx, by the time limit, or at the end
	host    string
	secrets []string
	keyNote string // whose key was sent; "" where that is not known
	watchdog
}

// end cancels everything still in progress. It may be called twice.
func (c *call) end() {
	c.pause()
	c.cancel(nil)
}

// failure explains what ended the call.
func (c *call) failure(tried string, err error) *failure.Failure {
	if failed := failure.OfContext(c.ctx); failed != nil {
		failed.Message = fmt.Sprintf("%s: %s: %s", tried, c.host, failed.Message)
		return failed
	}
	failed := &failure.Failure{Reason: failure.Network, Retryable: true}
	var invalid invalidError
	switch {
	case c.request != nil && context.Cause(c.request) == errIdle:
		failed.Reason = failure.Timeout
		failed.Message = fmt.Sprintf("%s: %s sent nothing for %v, the idle limit", tried, c.host, c.limit)
		return failed
	case c.request != nil && context.Cause(c.request) == errConnect:
		failed.Reason = failure.Timeout
		failed.Message = fmt.Sprintf("%s: %s gave no connection within %v, the connect limit", tried, c.host, c.connectLimit)
		return failed
	case errors.As(err, &invalid):
		failed.Reason, failed.Retryable = failure.Upstream, false
	case isTooLong(err):
		failed.Reason, failed.Retryable = failure.Upstream, false
	case isTimeout(err):
		failed.Reason = failure.Timeout
	case isCertificate(err):
		failed.Retryable = false
	}
	failed.Message = fmt.Sprintf("%s: %s: %s", tried, c.host, c.clean(innerText(err), maxMessage))
	return failed
}
