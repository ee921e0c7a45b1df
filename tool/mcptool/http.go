package mcptool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// overHTTP is the connection to a server over streamable HTTP. As the SDK's HTTP transport it adds the
// headers, bounds response sizes, aborts everything at the end, and detects errors that the SDK ignores.
type overHTTP struct {
	*session
	base      *http.Transport
	conn      mcp.Connection
	broken    atomic.Bool // the stream of notifications has ended
	ctx       context.Context
	cancel    context.CancelFunc
	mu        sync.Mutex
	closing   bool
	exchanges sync.WaitGroup // requests whose bodies are not closed yet
}

func newHTTP(s *session) *overHTTP {
	h := &overHTTP{session: s, base: http.DefaultTransport.(*http.Transport).Clone()}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.base.MaxResponseHeaderBytes = 1 << 20
	return h
}

// Connect returns a connection of the SDK; the first request opens it.
func (h *overHTTP) Connect(ctx context.Context) (mcp.Connection, error) {
	client := &http.Client{Transport: h, CheckRedirect: sameOrigin}
	transport := &mcp.StreamableClientTransport{Endpoint: h.options.URL, HTTPClient: client, MaxEventSize: -1} // the body is bounded here
	conn, err := transport.Connect(ctx)
	h.conn = conn
	return conn, err
}

// sameOrigin refuses redirects that would send the headers to another host.
func sameOrigin(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Scheme != first.Scheme || next.URL.Host != first.Host {
		return errors.New("it redirects to another host, which is not followed")
	}
	if len(via) > 5 {
		return errors.New("it redirects more than 5 times")
	}
	return nil
}

var errGone = errors.New("it has forgotten the session")

// RoundTrip sends one request of the SDK.
func (h *overHTTP) RoundTrip(request *http.Request) (*http.Response, error) {
	if !h.begin() {
		return nil, errClosed
	}
	ctx, cancel := context.WithCancel(request.Context())
	stop := context.AfterFunc(h.ctx, cancel)
	done := sync.OnceFunc(func() {
		stop()
		cancel()
		h.exchanges.Done()
	})
	request = request.Clone(ctx)
	for name, value := range h.options.Headers {
		request.Header.Set(name, value)
	}
	if request.Method == http.MethodPost { // a GET that resumes an answer has the call's context too
		noteSent(ctx)
	}
	response, err := h.base.RoundTrip(request)
	if err != nil {
		done()
		if notDialled(err) && request.Method == http.MethodPost {
			noteUnsent(ctx)
		}
		return nil, err
	}
	response.Body = &boundedBody{
		ReadCloser: response.Body, wire: h, done: done,
		stream:    strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream"),
		listening: isListening(request),
	}
	if isListening(request) {
		h.broken.Store(response.StatusCode != http.StatusOK || !response.Body.(*boundedBody).stream)
	}
	h.judge(request, response)
	return response, nil
}

func (h *overHTTP) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closing {
		h.exchanges.Add(1)
	}
	return !h.closing
}

// notDialled reports whether no connection was made, so that nothing can have been executed.
func notDialled(err error) bool {
	var at *net.OpError
	return errors.As(err, &at) && at.Op == "dial"
}

// isListening reports whether a request opens the stream on which a server notifies of changes.
func isListening(request *http.Request) bool {
	return request.Method == http.MethodGet || request.Header.Get("Mcp-Method") == "subscriptions/listen"
}

// judge handles a response's status. A server that has lost the session answers 404, and some answer 400 with
// a sentence about it.
func (h *overHTTP) judge(request *http.Request, response *http.Response) {
	if response.StatusCode < 400 {
		return
	}
	gone := false
	if request.Header.Get("Mcp-Session-Id") != "" && request.Method == http.MethodPost {
		switch response.StatusCode {
		case http.StatusNotFound:
			gone = true
		case http.StatusBadRequest:
			head, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10)) // an error recurs when the rest is read
			response.Body = rejoined{io.MultiReader(bytes.NewReader(head), response.Body), response.Body}
			gone = bytes.Contains(bytes.ToLower(head), []byte("session"))
		}
	}
	if gone {
		noteUnsent(request.Context())
		h.fail(errGone)
		return
	}
	noteStatus(request.Context(), response.StatusCode)
}

// rejoined is a body whose beginning was already read.
type rejoined struct {
	io.Reader
	io.Closer
}

// deaf reports whether the server has no stream left for notifications of changes. The SDK reopens that of
// the older protocol itself.
func (h *overHTTP) deaf() bool { return h.broken.Load() }

// changeArrived does nothing: the network's flow control bounds what a server can send.
func (h *overHTTP) changeArrived() {}

// explain finds the cause in an error of the SDK.
func (h *overHTTP) explain(err error) error {
	if err == nil {
		return errors.New("it closed the connection")
	}
	return plain(err)
}

// plain removes the URL, which may contain a secret, from an error of the HTTP client.
func plain(err error) error {
	var at *url.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mcp.ErrSessionMissing):
		return errGone
	case errors.As(err, &at):
		return at.Err
	}
	return err
}

// shut notifies the server of the end of the session, aborts the remaining requests and waits for their end.
func (h *overHTTP) shut() {
	if h.conn != nil {
		limit := time.AfterFunc(h.options.Grace, h.cancel)
		_ = h.conn.Close() // the request that ends the session is optional
		limit.Stop()
	}
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	h.cancel()
	h.exchanges.Wait()
	h.base.CloseIdleConnections()
}

// boundedBody is the body of a response: a whole message, or a stream of events that are each bounded.
type boundedBody struct {
	io.ReadCloser
	wire      *overHTTP
	stream    bool
	listening bool
	count     int     // bytes of the message so far
	tail      [3]byte // the last bytes before, to find a gap between events across reads
	done      func()
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.count += n
	if b.stream && n > 0 {
		b.countEvents(p[:n])
	}
	if limit := b.wire.options.MaxMessageBytes; b.count > limit {
		err = tooLarge(limit)
		b.wire.fail(err)
		return 0, err
	}
	if err != nil {
		b.ended()
	}
	return n, err
}

// countEvents resets the count after the empty line that ends an event.
func (b *boundedBody) countEvents(part []byte) {
	seam := append(b.tail[:], part[:min(3, len(part))]...)
	for _, gap := range []string{"\n\n", "\n\r\n", "\r\r"} {
		if at := bytes.LastIndex(part, []byte(gap)); at >= 0 {
			b.count = min(b.count, len(part)-at-len(gap))
		} else if bytes.Contains(seam, []byte(gap)) {
			b.count = min(b.count, len(part))
		}
	}
	for _, last := range part[max(0, len(part)-3):] {
		b.tail = [3]byte{b.tail[1], b.tail[2], last}
	}
}

// ended releases the exchange, even if the body is not closed afterwards.
func (b *boundedBody) ended() {
	if b.listening && b.stream {
		b.wire.broken.Store(true)
	}
	b.done()
}

func (b *boundedBody) Close() error {
	err := b.ReadCloser.Close()
	b.ended()
	return err
}
