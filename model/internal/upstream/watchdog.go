package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"net/url"
	"os"
	"time"

	"github.com/continuo-log/continuo/internal/sse"
)

var (
	errIdle    = errors.New("the upstream was silent for too long")
	errConnect = errors.New("there was no connection for too long")
)

// watchdog ends a request whose upstream is silent. It runs only while a read waits for the upstream, so that
// a slow consumer of the answer does not count.
type watchdog struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc

	connectLimit time.Duration
}

// watch creates the request's context; the watchdog does not run yet.
func (c *call) watch(limit time.Duration) {
	c.limit = limit
	c.request, c.cancel = context.WithCancelCause(c.ctx)
	cancel := c.cancel
	c.timer = time.AfterFunc(limit, func() { cancel(errIdle) })
	c.pause()
}

// connecting ends the request when there is no connection within limit, until stop is called. A limit of 0
// means no limit.
func (c *call) connecting(limit time.Duration) (stop func()) {
	if limit == 0 {
		return func() {}
	}
	c.connectLimit = limit
	cancel := c.cancel
	timer := time.AfterFunc(limit, func() { cancel(errConnect) })
	c.request = httptrace.WithClientTrace(c.request, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { timer.Stop() },
	})
	return func() { timer.Stop() }
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

// innerText says in plain words why a request failed, without the addresses that the packages of the network put before
// it.
func innerText(err error) string {
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	var host *net.DNSError
	var system *os.SyscallError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended before the answer did"
	case errors.As(err, &host) && host.IsNotFound:
		return "no address is known for this host"
	case errors.As(err, &system):
		return system.Err.Error()
	}
	return err.Error()
}
