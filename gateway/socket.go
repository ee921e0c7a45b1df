package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
)

// socketLimits bound what a client's WebSocket connection takes.
type socketLimits struct {
	message  int64         // bytes of a message
	waiting  int           // messages that wait for the response in progress
	lifetime time.Duration // after which the connection creates no more responses
	ping     time.Duration // between pings, and how long the client may take to answer one
	write    time.Duration // how long the client may take to receive an event
}

// usualSocketLimits have OpenAI's lifetime, which also bounds how long a key is used after it was revoked.
var usualSocketLimits = socketLimits{message: 32 << 20, waiting: 4, lifetime: time.Hour, ping: 30 * time.Second, write: 30 * time.Second}

// socket is a client's WebSocket connection at /v1/responses. It creates one response after the other.
type socket struct {
	api     *responsesAPI
	limits  socketLimits
	conn    *websocket.Conn
	request *http.Request // the handshake
	inbox   chan socketMessage
	local   *localResponse // which only this connection can continue; nil for none
}

// socketMessage is a message of the client. Release gives back its memory.
type socketMessage struct {
	body    []byte
	release func()
}

// socket answers GET /v1/responses: the handshake of a WebSocket connection, and what the client sends over it.
func (a *responsesAPI) socket(w http.ResponseWriter, r *http.Request) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		return &api.Problem{
			Status: http.StatusUpgradeRequired, Type: api.InvalidRequest, Code: "upgrade_required",
			Message: "GET /v1/responses begins a WebSocket connection; responses are created by POST, and retrieved by GET /v1/responses/ID",
		}
	}
	a.sockets.Add(1) // before the connection is no longer the http.Server's, whose end Wait comes after
	defer a.sockets.Done()
	conn, err := websocket.Accept(w, r, nil) // it refuses pages of other origins, too
	if err != nil {
		return nil //nolint:nilerr // it has answered
	}
	s := &socket{api: a, limits: a.socketLimits, conn: conn, request: r, inbox: make(chan socketMessage, a.socketLimits.waiting)}
	s.run()
	return nil
}

// run serves the connection until either side ends it.
func (s *socket) run() {
	ctx, leave := context.WithCancel(s.request.Context())
	var work sync.WaitGroup
	work.Go(func() {
		defer leave()
		s.receive(ctx)
	})
	work.Go(func() {
		defer leave()
		s.ping(ctx)
	})
	code, reason := s.serve(ctx)
	_ = s.conn.Close(code, reason) // waits for the client's part for a while
	leave()
	work.Wait()
	close(s.inbox)
	for message := range s.inbox {
		message.release()
	}
}

// serve creates a response for each message, until the connection is to be closed for the reason that it returns.
func (s *socket) serve(ctx context.Context) (websocket.StatusCode, string) {
	expired := time.NewTimer(s.limits.lifetime)
	defer expired.Stop()
	for {
		select {
		case <-ctx.Done():
			return websocket.StatusNormalClosure, ""
		case <-s.api.engine.Draining().Done():
			return websocket.StatusGoingAway, "the server shuts down"
		case <-expired.C:
			out := &socketWriter{ctx: ctx, socket: s}
			s.fail(out, &api.Problem{
				Status: http.StatusBadRequest, Type: api.InvalidRequest, Code: "websocket_connection_limit_reached",
				Message: "this connection has reached its limit of " + s.limits.lifetime.String() + ": open a new one",
			})
			return websocket.StatusGoingAway, "the connection has reached its limit"
		case message := <-s.inbox:
			s.create(ctx, message.body)
			message.release()
		}
	}
}

// receive reads messages until the client leaves or breaks a limit. It reads also while a response is created: otherwise
// the client's leaving and its answers to pings would not be seen.
func (s *socket) receive(ctx context.Context) {
	s.conn.SetReadLimit(s.limits.message) // a longer message closes the connection
	for {
		kind, reader, err := s.conn.Reader(s.request.Context())
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			_ = s.conn.Close(websocket.StatusUnsupportedData, "a message is a JSON object, as text")
			return
		}
		message, err := readMessage(ctx, reader)
		refused := new(api.Problem)
		switch {
		case errors.As(err, &refused):
			_ = s.conn.Close(websocket.StatusTryAgainLater, refused.Code)
			return
		case err != nil:
			return
		case !utf8.Valid(message.body):
			message.release()
			_ = s.conn.Close(websocket.StatusInvalidFramePayloadData, "the message is not valid UTF-8")
			return
		}
		select {
		case s.inbox <- message:
		default:
			message.release()
			_ = s.conn.Close(websocket.StatusPolicyViolation, "too many messages wait: responses are created one after the other")
			return
		}
	}
}

// readMessage reads a message, whose memory is that of the server's requests.
func readMessage(ctx context.Context, reader io.Reader) (socketMessage, error) {
	held, release := continuo.HoldMemory(ctx)
	body, err := io.ReadAll(&heldReader{reader, held})
	if err != nil {
		release()
	}
	return socketMessage{body, release}, err
}

// heldReader draws what is read from the memory of a context.
type heldReader struct {
	io.Reader
	held context.Context //nolint:containedctx // of one call
}

// Read reads, and fails where there is no memory left.
func (h *heldReader) Read(data []byte) (int, error) {
	n, err := h.Reader.Read(data)
	if refused := continuo.TakeMemory(h.held, int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}

// ping asks the client now and then whether it is still there. One that does not answer is disconnected.
func (s *socket) ping(ctx context.Context) {
	every := time.NewTicker(s.limits.ping)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		within, cancel := context.WithTimeout(ctx, s.limits.ping)
		err := s.conn.Ping(within)
		cancel()
		if err != nil {
			_ = s.conn.CloseNow()
			return
		}
	}
}

// Wait waits until the WebSocket connections of clients have ended, which they do when the engine is drained and the
// responses in progress have ended.
func (g *Gateway) Wait(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		g.sockets.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
