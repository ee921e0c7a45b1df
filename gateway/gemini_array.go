package gateway

import (
	"net/http"
	"strings"
)

// geminiArray is the writer of a client that takes Gemini's stream as a JSON array, which is its form without alt=sse. It
// makes the elements of the array from the events of the stream. An error that comes before the stream is not changed.
type geminiArray struct {
	http.ResponseWriter
	begun  bool // the answer's header was written
	array  bool // the answer is a stream
	events int  // that were written
	held   string
}

// Unwrap lets http.ResponseController find the writer of the connection.
func (a *geminiArray) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader writes the header of the answer, with the type of what it has.
func (a *geminiArray) WriteHeader(status int) {
	a.begun = true
	if strings.HasPrefix(a.Header().Get("Content-Type"), eventStream) {
		a.array = true
		a.Header().Set("Content-Type", "application/json; charset=UTF-8")
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write writes the events that are complete.
func (a *geminiArray) Write(wire []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	if !a.array {
		return a.ResponseWriter.Write(wire)
	}
	a.held = strings.ReplaceAll(a.held+string(wire), "\r\n", "\n")
	for {
		event, rest, found := strings.Cut(a.held, "\n\n")
		if !found {
			return len(wire), nil
		}
		a.held = rest
		if err := a.element(event); err != nil {
			return 0, err
		}
	}
}

// element writes the data of an event as an element.
func (a *geminiArray) element(event string) error {
	var data []string
	for line := range strings.Lines(event) {
		if text, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "data:"); ok {
			data = append(data, strings.TrimPrefix(text, " "))
		}
	}
	if len(data) == 0 {
		return nil
	}
	separator := ",\r\n"
	if a.events == 0 {
		separator = "["
	}
	a.events++
	_, err := a.ResponseWriter.Write([]byte(separator + strings.Join(data, "\n") + "\n"))
	return err
}

// end ends the array.
func (a *geminiArray) end() {
	if !a.array {
		return
	}
	end := "]"
	if a.events == 0 {
		end = "[]"
	}
	_, _ = a.ResponseWriter.Write([]byte(end))
}
