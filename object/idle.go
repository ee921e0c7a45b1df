package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// idleTransport ends a request when no byte of it or of its response was transferred for the limit. Time in
// which the caller does not read the response does not count.
type idleTransport struct {
	next  http.RoundTripper
	limit time.Duration
}

func (t *idleTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	w := &watch{limit: t.limit, idle: &idleError{after: t.limit}, cancel: cancel}
	w.timer = time.AfterFunc(t.limit, func() { cancel(w.idle) })
	request = request.WithContext(ctx)
	if request.Body != nil && request.Body != http.NoBody {
		request.Body = &sentBody{ReadCloser: request.Body, watch: w}
	}
	response, err := t.next.RoundTrip(request)
	w.answered()
	if err != nil {
		err = w.reason(ctx, err)
		cancel(nil)
		return nil, err
	}
	response.Body = &answerBody{ReadCloser: response.Body, ctx: ctx, watch: w}
	return response, nil
}

// idleError implements Timeout, so that the SDK retries the request.
type idleError struct{ after time.Duration }

func (e *idleError) Error() string {
	return fmt.Sprintf("%v: no byte moved for %s", continuo.ErrUnavailable, e.after)
}
func (e *idleError) Timeout() bool { return true }
func (e *idleError) Unwrap() error { return continuo.ErrUnavailable }

// watch runs while the transport waits for bytes.
type watch struct {
	limit  time.Duration
	idle   *idleError
	cancel context.CancelCauseFunc

	mu   sync.Mutex
	sent bool // the response has begun: later reads of the request do not count
	// timer is reset and stopped under mu.
	timer *time.Timer
}

func (w *watch) moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.sent {
		w.timer.Reset(w.limit)
	}
}

func (w *watch) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = true
	w.timer.Stop()
}

// reason returns why a request failed.
func (w *watch) reason(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), w.idle) {
		return w.idle
	}
	return err
}

type sentBody struct {
	io.ReadCloser
	watch *watch
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.watch.moved()
	return b.ReadCloser.Read(p)
}

type answerBody struct {
	io.ReadCloser
	ctx   context.Context
	watch *watch
}

func (b *answerBody) Read(p []byte) (int, error) {
	b.watch.timer.Reset(b.watch.limit)
	n, err := b.ReadCloser.Read(p)
	b.watch.timer.Stop()
	if err != nil && err != io.EOF {
		err = b.watch.reason(b.ctx, err)
	}
	return n, err
}

func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.watch.timer.Stop()
	b.watch.cancel(nil)
	return err
}
