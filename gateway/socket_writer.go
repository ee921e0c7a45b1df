package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

const eventStream = "text/event-stream"

// socketWriter writes an answer over a WebSocket connection: each event of its stream is a message. It is the
// http.ResponseWriter of a request that came as a message; each Write of a stream has whole events, as of all endpoints.
type socketWriter struct {
	ctx    context.Context //nolint:containedctx // of one response
	socket *socket
	kept   *localResponse // how the response is continued, where only the connection can; nil for one that is stored

	header   http.Header
	status   int
	body     bytes.Buffer // of an answer that is no stream
	number   int          // of the next event
	ended    bool         // the last message of the response was sent
	terminal string       // the type of that message
	response struct {     // as it ended
		ID     string
		Output []json.RawMessage
	}
}

// Header is part of http.ResponseWriter.
func (w *socketWriter) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader is part of http.ResponseWriter.
func (w *socketWriter) WriteHeader(status int) { w.status = status }

// Flush is part of http.Flusher: events are sent at once.
func (w *socketWriter) Flush() {}

// Write sends the events of a stream; another answer is kept until its end.
func (w *socketWriter) Write(data []byte) (int, error) {
	if w.status >= http.StatusBadRequest || !strings.HasPrefix(w.Header().Get("Content-Type"), eventStream) {
		return w.body.Write(data)
	}
	events := sse.NewReader(bytes.NewReader(data), 0)
	for {
		event, err := events.Next()
		if err != nil {
			return len(data), nil //nolint:nilerr // the data are read to their end
		}
		if !w.event(event.Data) {
			return 0, errClientLeft
		}
	}
}

// event sends an event, and notes how the response ends. It reports false where the client has left.
func (w *socketWriter) event(data []byte) bool {
	object, err := rawjson.ParseObject(data)
	if err != nil || w.ended {
		return true // the end of the stream, half of an event, or what came after the last event
	}
	w.number++
	switch kind, _ := rawjson.String(object.Get("type")); kind {
	case responses.EventCompleted, responses.EventIncomplete, responses.EventFailed:
		w.ended, w.terminal = true, kind
		_ = json.Unmarshal(object.Get("response"), &w.response) // what cannot be read cannot be continued
	case responses.EventError:
		w.ended, w.terminal = true, kind
		if object.Get("status") == nil {
			object.Set("status", json.RawMessage("500"))
			data = object.Raw()
		}
	}
	return w.send(data)
}

// send sends a message. It reports false where the client has left.
func (w *socketWriter) send(message []byte) bool {
	ctx, cancel := context.WithTimeout(w.ctx, w.socket.limits.write)
	defer cancel()
	return w.socket.conn.Write(ctx, websocket.MessageText, message) == nil
}

// finish sends the error of an answer that did not end as a response does.
func (w *socketWriter) finish() {
	if w.ended {
		return
	}
	w.ended, w.terminal = true, responses.EventError
	if w.status == 0 {
		w.status = http.StatusOK
	}
	message := newErrorMessage(w.status, w.Header(), w.body.Bytes())
	message.SequenceNumber = w.number
	w.send(rawjson.MustMarshal(message))
}

// failed reports whether the response ended with an error.
func (w *socketWriter) failed() bool {
	return w.terminal == responses.EventFailed || w.terminal == responses.EventError || w.response.ID == ""
}
