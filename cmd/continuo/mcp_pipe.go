package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/continuo-log/continuo/internal/child"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// mcpPipe is a client's end of an MCP session over pipes. The SDK ends the session at a line that is no message, and
// drops requests in progress when the input ends. So lines that are no message are answered here, with an error, and
// skipped; and a client that closes its end right after a request still gets the answer: the end is held back until all
// requests are answered, or for patience. Batches are refused: the protocol has had none since 2025-06-18.
type mcpPipe struct {
	in       *child.Lines
	longest  int // longest line, in bytes
	patience time.Duration
	message  []byte // the unread rest of a message

	writing sync.Mutex // of out: a line is written as a whole
	out     io.Writer

	mu       sync.Mutex
	open     map[jsonrpc.ID]bool // requests without an answer
	answered chan struct{}       // closed, and replaced, with each answer
}

func newMCPPipe(in io.Reader, out io.Writer, longest int, patience time.Duration) *mcpPipe {
	return &mcpPipe{in: child.NewLines(in, longest), out: out, longest: longest, patience: patience, open: map[jsonrpc.ID]bool{}, answered: make(chan struct{})}
}

// Read is part of io.Reader.
func (p *mcpPipe) Read(into []byte) (int, error) {
	for len(p.message) == 0 {
		line, err := p.in.Next()
		line = bytes.TrimSpace(line)
		if errors.Is(err, child.ErrLongLine) {
			err = p.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message has more than %d bytes", p.longest))
		} else if len(line) > 0 {
			p.message, err = p.check(line)
		} else if err != nil {
			p.await()
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(into, p.message)
	p.message = p.message[n:]
	return n, nil
}

// check returns a message with its line end; for a line that is no message it answers the client and returns nil.
func (p *mcpPipe) check(line []byte) ([]byte, error) {
	switch {
	case !json.Valid(line):
		return nil, p.refuse(nil, jsonrpc.CodeParseError, "the line is no JSON: a message is one line")
	case line[0] == '[':
		return nil, p.refuse(nil, jsonrpc.CodeInvalidRequest, "batches are not taken: send each message as a line of its own")
	case line[0] != '{':
		return nil, p.refuse(nil, jsonrpc.CodeInvalidRequest, "a message must be a JSON object")
	}
	message, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, p.refuse(line, jsonrpc.CodeInvalidRequest, `no message of JSON-RPC 2.0: that has "jsonrpc": "2.0", a "method" or the "id" that it answers, and ids are strings or numbers`)
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open[request.ID] = true
	}
	return append(line, '\n'), nil
}

// refuse answers a line that is no message, under its id, if any.
func (p *mcpPipe) refuse(object []byte, code int64, message string) error {
	var parsed struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   jsonrpc.Error   `json:"error"`
	}
	_ = json.Unmarshal(object, &parsed) // a line that cannot be parsed has no id
	if isID := len(parsed.ID) > 0 && strings.ContainsRune(`"-0123456789`, rune(parsed.ID[0])); !isID {
		parsed.ID = json.RawMessage("null")
	}
	parsed.Version, parsed.Error = "2.0", jsonrpc.Error{Code: code, Message: message}
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := p.out.Write(append(rawjson.MustMarshal(parsed), '\n'))
	return err
}

// Write is part of io.Writer. The SDK writes each message with one call.
func (p *mcpPipe) Write(from []byte) (int, error) {
	p.writing.Lock()
	n, err := p.out.Write(from)
	p.writing.Unlock()
	if message, failed := jsonrpc.DecodeMessage(from); failed == nil {
		if answer, ok := message.(*jsonrpc.Response); ok {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.open, answer.ID)
			close(p.answered)
			p.answered = make(chan struct{})
		}
	}
	return n, err
}

// Close leaves the program's own pipes open.
func (*mcpPipe) Close() error { return nil }

// await returns when all requests are answered, or after patience.
func (p *mcpPipe) await() {
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	for {
		p.mu.Lock()
		waits, answered := len(p.open) > 0, p.answered
		p.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-answered:
		case <-timer.C:
			return
		}
	}
}
