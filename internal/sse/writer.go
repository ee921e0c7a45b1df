package sse

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Writer writes events to an HTTP response, each with one write and, without Hold, one flush. It is not safe
// for concurrent use.
type Writer struct {
	// Hold says that writes are not flushed: the caller calls Flush soon.
	Hold bool
	held bool // something was written since the last flush

	response   http.ResponseWriter
	controller *http.ResponseController
	buf        []byte
}

// NewWriter prepares a response for events: it sets Content-Type, and the headers that keep caches and proxies from
// buffering events. The status is sent with the first write, 200 unless set before.
func NewWriter(response http.ResponseWriter) *Writer {
	header := response.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no")
	return &Writer{response: response, controller: http.NewResponseController(response)}
}

// Write sends an event. Data may have several lines; CR and CRLF in it become LF, as the format has no other. An id or
// a type with a line end is refused, and nothing is sent.
func (w *Writer) Write(event Event) error {
	if strings.ContainsAny(event.ID, "\r\n\x00") || strings.ContainsAny(event.Type, "\r\n") {
		return fmt.Errorf("write event: the id %q or the type %q has a line end or a NUL in it", event.ID, event.Type)
	}
	w.buf = w.buf[:0]
	if event.ID != "" {
		w.line("id", event.ID)
	}
	if event.Type != "" {
		w.line("event", event.Type)
	}
	if event.Retry > 0 {
		w.line("retry", strconv.FormatInt(int64(event.Retry/time.Millisecond), 10))
	}
	for rest, more := event.Data, true; more; {
		var line []byte
		line, rest, more = cutLine(rest)
		w.buf = append(append(append(w.buf, "data: "...), line...), '\n')
	}
	w.buf = append(w.buf, '\n')
	return w.send()
}

// Comment sends a comment, which clients skip: it keeps an idle connection open. Line ends in text become spaces.
func (w *Writer) Comment(text string) error {
	w.buf = append(append(w.buf[:0], ": "...), strings.NewReplacer("\r", " ", "\n", " ").Replace(text)...)
	w.buf = append(w.buf, "\n\n"...)
	return w.send()
}

func (w *Writer) line(name, value string) {
	w.buf = append(append(append(append(w.buf, name...), ": "...), value...), '\n')
}

func (w *Writer) send() error {
	if _, err := w.response.Write(w.buf); err != nil {
		return err
	}
	if w.held = true; w.Hold {
		return nil
	}
	return w.Flush()
}

// Flush sends what was written, if it was not sent before.
func (w *Writer) Flush() error {
	if !w.held {
		return nil
	}
	w.held = false
	return w.controller.Flush()
}

// cutLine splits data at its first line end; more reports whether there was one.
func cutLine(data []byte) (line, rest []byte, more bool) {
	at := lineEnd(data)
	if at < 0 {
		return data, nil, false
	}
	line, rest = data[:at], data[at+1:]
	if data[at] == '\r' {
		rest = bytes.TrimPrefix(rest, []byte("\n"))
	}
	return line, rest, true
}
