package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	acp "github.com/coder/acp-go-sdk"

	"github.com/continuo-log/continuo/internal/child"
)

// connection is the client's end of a JSON-RPC connection with one message per line. One goroutine reads it,
// see listen. During a call, the caller's goroutine receives each message, and a slow caller slows the agent
// down; between calls idle receives the messages. Calls are sequential; notifications may be sent at any
// time.
type connection struct {
	lines *child.Lines
	out   io.Writer
	// idle handles messages between calls, and is called by listen. Its error ends the connection.
	idle func(message) error

	writing sync.Mutex
	newest  int // id of the newest call

	mu      sync.Mutex
	waiting *pending // the call in progress; nil
	passed  int      // bytes received since the last call

	leave chan struct{} // closed when messages are no longer handled
	ended chan struct{} // closed when reading has ended
	fault error         // the cause; read it after ended
}

// message is any message of JSON-RPC.
type message struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id,omitempty"`
	Method  string            `json:"method,omitempty"`
	Params  json.RawMessage   `json:"params,omitempty"`
	Result  json.RawMessage   `json:"result,omitempty"`
	Error   *acp.RequestError `json:"error,omitempty"`
}

const (
	// maxLine bounds one message, in bytes: agents put whole files into the updates of a tool's call.
	maxLine = 32 << 20
	// maxIdle bounds the bytes received between calls, and those of invalid lines: they are read and ignored,
	// and cost time.
	maxIdle = 64 << 20
)

var errClosed = errors.New("the agent closed its pipes")

func newConnection(in io.Reader, out io.Writer, idle func(message) error) *connection {
	return &connection{
		lines: child.NewLines(in, maxLine), out: out, idle: idle, leave: make(chan struct{}), ended: make(chan struct{}),
	}
}

// listen reads until the pipe is closed, a message breaks a rule, or leave is closed.
func (c *connection) listen() {
	defer close(c.ended)
	for c.fault == nil {
		c.fault = c.next()
	}
}

// next reads one line and passes its message on; it ignores invalid lines.
func (c *connection) next() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	var m message
	isMessage := json.Unmarshal(line, &m) == nil && m.Version == "2.0"
	waiting, err := c.admit(len(line), isMessage)
	if err != nil || !isMessage {
		return err
	}
	if waiting == nil {
		return c.idle(m)
	}
	select {
	case waiting.messages <- m:
		return nil
	case <-waiting.over:
		return c.idle(m)
	case <-c.leave:
		return errClosed
	}
}

// admit finds the call in progress; it counts the bytes that arrive between calls, and those of invalid lines.
func (c *connection) admit(size int, isMessage bool) (*pending, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil || !isMessage {
		c.passed += size
	}
	if c.passed > maxIdle {
		return nil, fmt.Errorf("the agent sent more than %d bytes without a request", maxIdle)
	}
	return c.waiting, nil
}

// line reads a line.
func (c *connection) line() ([]byte, error) {
	line, err := c.lines.Next()
	switch {
	case errors.Is(err, child.ErrLongLine):
		return nil, fmt.Errorf("the agent sent a message of more than the maximum of %d bytes", maxLine)
	case err != nil:
		return nil, errClosed
	}
	return line, nil
}

// pending is a call in progress.
type pending struct {
	*connection
	id       json.RawMessage
	messages chan message
	over     chan struct{}
}

// call calls a method and reads its result into result, which may be nil; take receives the messages before
// it. A *acp.RequestError is the agent's own.
func (c *connection) call(method string, params, result any, take func(message) error) error {
	p := c.expect()
	defer p.end()
	if err := p.ask(method, params); err != nil {
		return err
	}
	return p.result(result, take)
}

// expect makes the call receive messages from now on. The caller must end it.
func (c *connection) expect() *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest++
	c.passed = 0
	c.waiting = &pending{
		connection: c, id: json.RawMessage(strconv.Itoa(c.newest)), messages: make(chan message), over: make(chan struct{}),
	}
	return c.waiting
}

// isCalling reports whether a call is in progress.
func (c *connection) isCalling() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting != nil
}

func (p *pending) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = nil
	close(p.over)
}

func (p *pending) ask(method string, params any) error {
	if isClosed(p.ended) {
		return p.fault
	}
	return p.send(message{ID: p.id, Method: method}, params)
}

// result waits for the result, which may be nil if it is not needed; take receives the messages before it. An
// error of take ends the call.
func (p *pending) result(result any, take func(message) error) error {
	for {
		var got message
		select {
		case got = <-p.messages:
		case <-p.ended:
			return p.fault
		}
		switch {
		case got.Method != "":
			if err := take(got); err != nil {
				return err
			}
		case !bytes.Equal(got.ID, p.id): // of a call that is no longer waited for
		case got.Error != nil:
			return got.Error
		case result == nil:
			return nil
		default:
			if err := json.Unmarshal(got.Result, result); err != nil {
				return fmt.Errorf("read the result: %w", err)
			}
			return nil
		}
	}
}

// notify sends a notification.
func (c *connection) notify(method string, params any) error {
	return c.send(message{Method: method}, params)
}

// reply answers a request of the agent.
func (c *connection) reply(request message, result any, refused *acp.RequestError) error {
	answer := message{ID: request.ID, Error: refused}
	if refused == nil {
		var err error
		if answer.Result, err = json.Marshal(result); err != nil {
			return fmt.Errorf("answer %s: %w", request.Method, err)
		}
	}
	return c.send(answer, nil)
}

func (c *connection) send(m message, params any) error {
	m.Version = "2.0"
	if params != nil {
		var err error
		if m.Params, err = json.Marshal(params); err != nil {
			return fmt.Errorf("write %s: %w", m.Method, err)
		}
	}
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write %s: %w", m.Method, err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("%w: %w", errClosed, err)
	}
	return nil
}
