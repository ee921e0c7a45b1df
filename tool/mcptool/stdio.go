package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/continuo-log/continuo/internal/child"
)

// lineConn is a connection of JSON lines over a process's pipes. Unlike the SDK's own, it obeys the context of
// a write, ignores invalid lines (many servers print to stdout), and bounds what a server can make the client
// queue.
type lineConn struct {
	session *session
	process *child.Process
	lines   *child.Lines
	queue   []jsonrpc.Message // the rest of a batch
	writing chan struct{}     // holds one token while a write runs

	mu       sync.Mutex
	asked    int  // requests of the server that are not answered yet
	changing bool // a list_changed is on its way to the SDK
	noise    int  // number of invalid lines
}

// maxAsked bounds the unanswered requests of a server. A client without capabilities is sent only pings.
const maxAsked = 64

func newLineConn(process *child.Process, s *session) *lineConn {
	return &lineConn{session: s, process: process, lines: child.NewLines(process, s.options.MaxMessageBytes), writing: make(chan struct{}, 1)}
}

// SessionID is empty: a process is its session.
func (c *lineConn) SessionID() string { return "" }

// Read returns the next relevant message.
func (c *lineConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		for len(c.queue) > 0 {
			next := c.queue[0]
			c.queue[0], c.queue = nil, c.queue[1:] // a message may be large
			if pass, err := c.admit(next); err != nil {
				c.session.fail(err)
				return nil, err
			} else if pass {
				return next, nil
			}
		}
		line, err := c.lines.Next()
		if errors.Is(err, child.ErrLongLine) {
			err = tooLarge(c.session.options.MaxMessageBytes)
			c.session.fail(err)
		}
		if err != nil {
			return nil, err
		}
		c.queue = c.decode(line)
	}
}

func tooLarge(limit int) error {
	return fmt.Errorf("it sent a message of more than %d bytes, which is all that is accepted of one", limit)
}

// decode parses a line: one message, several of a batch, or none for an invalid line.
func (c *lineConn) decode(line []byte) []jsonrpc.Message {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	parts := []json.RawMessage{line}
	if line[0] == '[' {
		if json.Unmarshal(line, &parts) != nil {
			parts = nil
		}
	}
	var messages []jsonrpc.Message
	for _, part := range parts {
		if message, err := jsonrpc.DecodeMessage(part); err == nil {
			messages = append(messages, message)
		}
	}
	if len(messages) == 0 {
		c.skipped(line)
	}
	return messages
}

// skipped logs invalid lines, the first and then ever fewer.
func (c *lineConn) skipped(line []byte) {
	c.noise++
	if c.noise&(c.noise-1) == 0 {
		c.session.options.Logger.Debug("the MCP server printed lines that are no messages", "lines", c.noise,
			"last", string(bytes.ToValidUTF8(line[:min(len(line), 200)], []byte("\uFFFD"))))
	}
}

const (
	listChanged = "notifications/tools/list_changed"
	listenAck   = "notifications/subscriptions/acknowledged"
)

// admit decides whether a message goes to the SDK, which queues requests and notifications without a
// bound. Of the notifications only a change of the list matters, and one at a time.
func (c *lineConn) admit(message jsonrpc.Message) (bool, error) {
	request, ok := message.(*jsonrpc.Request)
	if !ok {
		return true, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case request.IsCall():
		c.asked++
		if c.asked > maxAsked {
			return false, fmt.Errorf("it sent more than %d requests without reading the answers", maxAsked)
		}
		return true, nil
	case request.Method == listChanged:
		c.session.settling()
		pass := !c.changing
		c.changing = true
		return pass, nil
	}
	return request.Method == listenAck, nil
}

// changeArrived reports that the SDK has handled a list_changed.
func (c *lineConn) changeArrived() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changing = false
}

// Write writes one message. A write that ctx interrupts ends the session, because the server could not find
// the beginning of the next message.
func (c *lineConn) Write(ctx context.Context, message jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, answer := message.(*jsonrpc.Response); answer {
		c.mu.Lock()
		c.asked--
		c.mu.Unlock()
	}
	return c.write(ctx, append(data, '\n'))
}

func (c *lineConn) write(ctx context.Context, data []byte) error {
	n, err := c.process.WriteWithin(ctx, data)
	if n > 0 {
		noteSent(ctx)
	}
	if err == nil {
		return nil
	}
	if n > 0 {
		c.session.fail(errors.New("it does not read what it is sent"))
		_ = c.Close()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("write to the server: %w", err)
}

// Close aborts reads and writes. It is idempotent.
func (c *lineConn) Close() error {
	c.process.Disconnect()
	return nil
}
