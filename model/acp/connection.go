package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

// connection is the client's end of JSON-RPC over lines. It has no goroutine: whoever waits for an answer reads what
// comes before it. Calls follow one another; notifications may be sent at any time.
type connection struct {
	lines *bufio.Reader
	out   io.Writer
	// asked answers a request of the agent, heard takes a notification. An error of heard ends the call under way.
	asked func(method string, params json.RawMessage) (any, *acp.RequestError)
	heard func(method string, params json.RawMessage) error

	writing sync.Mutex
	newest  int // id of the newest call
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

// maxLine bounds one message, in bytes: agents show whole files in what they tell of a tool's call.
const maxLine = 32 << 20

var errClosed = errors.New("the agent closed its pipes")

// call calls a method and reads its result into result. A *acp.RequestError is the agent's own.
func (c *connection) call(method string, params, result any) error {
	c.newest++
	id := json.RawMessage(strconv.Itoa(c.newest))
	if err := c.send(message{ID: id, Method: method}, params); err != nil {
		return err
	}
	for {
		got, err := c.next()
		switch {
		case err != nil:
			return err
		case got.Method != "" && len(got.ID) > 0:
			err = c.answer(got)
		case got.Method != "":
			err = c.heard(got.Method, got.Params)
		case !bytes.Equal(got.ID, id): // of a call that nobody waits for
		case got.Error != nil:
			return got.Error
		default:
			if err := json.Unmarshal(got.Result, result); err != nil {
				return fmt.Errorf("read the result: %w", err)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// notify sends what has no answer.
func (c *connection) notify(method string, params any) error {
	return c.send(message{Method: method}, params)
}

// answer answers a request of the agent.
func (c *connection) answer(request message) error {
	result, refused := c.asked(request.Method, request.Params)
	reply := message{ID: request.ID, Error: refused}
	if refused == nil {
		var err error
		if reply.Result, err = json.Marshal(result); err != nil {
			return fmt.Errorf("answer %s: %w", request.Method, err)
		}
	}
	return c.send(reply, nil)
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

// next reads the next message; lines that are none are passed over.
func (c *connection) next() (message, error) {
	for {
		line, err := c.line()
		if err != nil {
			return message{}, err
		}
		var m message
		if json.Unmarshal(line, &m) == nil && m.Version == "2.0" {
			return m, nil
		}
	}
}

// line reads up to a line's end.
func (c *connection) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("the agent sent a message of more than %d bytes, which is all that is accepted of one", maxLine)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, errClosed
		}
	}
}
