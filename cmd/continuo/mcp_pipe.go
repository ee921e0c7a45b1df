package main

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// mcpPipe is a client's end of an MCP session over pipes. A client that closes its end right behind a request still
// gets the answer: the SDK drops what is under way when the input ends, so that the end is held back until all
// requests are answered, or for patience.
type mcpPipe struct {
	in       io.Reader
	out      io.Writer
	longest  int // bytes of a line that are looked at; the SDK refuses longer ones
	patience time.Duration

	asking, answering lines // of what comes in and what goes out

	mu       sync.Mutex
	open     map[string]bool // ids of requests without an answer
	answered chan struct{}   // closed, and replaced, with each answer
}

func newMCPPipe(in io.Reader, out io.Writer, longest int, patience time.Duration) *mcpPipe {
	return &mcpPipe{in: in, out: out, longest: longest, patience: patience, open: map[string]bool{}, answered: make(chan struct{})}
}

// Read is part of io.Reader.
func (p *mcpPipe) Read(into []byte) (int, error) {
	n, err := p.in.Read(into)
	p.asking.take(into[:n], p.longest, func(id string, isRequest bool) {
		if isRequest {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.open[id] = true
		}
	})
	if n > 0 || err == nil {
		return n, nil // an error comes again
	}
	p.await()
	return 0, err
}

// Write is part of io.Writer.
func (p *mcpPipe) Write(from []byte) (int, error) {
	n, err := p.out.Write(from)
	p.answering.take(from[:n], p.longest, func(id string, isRequest bool) {
		if !isRequest {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.open, id)
			close(p.answered)
			p.answered = make(chan struct{})
		}
	})
	return n, err
}

// Close leaves the program's own pipes open.
func (*mcpPipe) Close() error { return nil }

// await returns when all requests are answered, or when patience is over.
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

// lines puts the lines of a stream together.
type lines struct {
	rest []byte
	skip bool // the line is too long
}

// take gives the id of each message with an id to a function, and whether it is a request.
func (l *lines) take(data []byte, longest int, each func(id string, isRequest bool)) {
	for len(data) > 0 {
		piece, rest, ended := bytes.Cut(data, []byte{'\n'})
		data = rest
		if l.skip = l.skip || len(l.rest)+len(piece) > longest; !l.skip {
			l.rest = append(l.rest, piece...)
		}
		if !ended {
			return
		}
		var message struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if !l.skip && json.Unmarshal(l.rest, &message) == nil && message.ID != nil {
			each(string(message.ID), message.Method != "")
		}
		l.rest, l.skip = nil, false
	}
}
