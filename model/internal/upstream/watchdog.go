package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"time"

	"github.com/continuo-log/continuo/internal/sse"
)

var errIdle = errors.New("the upstream was silent for too long")

// watchdog ends a request whose upstream is silent. It runs only while somebody waits for the upstream,
// so that a slow reader of the answer is not held against it.
type watchdog struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// watch makes the request's context; the watchdog does not run yet.
func (c *call) watch(limit time.Duration) {
	c.limit = limit
	c.request, c.cancel = context.WithCancelCause(c.ctx)
	cancel := c.cancel
	c.timer = time.AfterFunc(limit, func() { cancel(errIdle) })
	c.pause()
}

func (w *watchdog) resume() { w.timer.Reset(w.limit) }
func (w *watchdog) pause()  { w.timer.Stop() }

func isTooLong(err error) bool { return errors.Is(err, sse.ErrTooLong) || errors.Is(err, errTooLong) }

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func isCertificate(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate)
}

// innerText is an error's text without the address that package net/http puts before it.
func innerText(err error) string {
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	return err.Error()
}
