package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/model/internal/failure"
	"github.com/continuo-log/continuo/model/internal/forward"
)

var errTooLong = errors.New("the answer is too long")

// Response is an upstream's answer with a success status.
type Response struct {
	call *call
	http *http.Response
	peek []byte // read already to detect the format

	forwarded *forward.Request // the client's request that it answers; nil for none
	events    *Events          // of a streamed answer
	whole     []byte           // the body of an answer that is not streamed, until TakeWire returned it
	said      bool             // the newest event is the upstream's own error
}

// Read reads the body while the watchdog runs.
func (r *Response) Read(p []byte) (int, error) {
	if len(r.peek) > 0 {
		n := copy(p, r.peek)
		r.peek = r.peek[n:]
		return n, nil
	}
	r.call.resume()
	defer r.call.pause()
	return r.http.Body.Read(p)
}

// Close ends the request, whether or not all of the answer was read.
func (r *Response) Close() {
	r.call.end()
	_ = r.http.Body.Close()
}

// drainTime and drainBytes bound the time and the amount of reading after the end of an answer.
const (
	drainTime  = 100 * time.Millisecond
	drainBytes = 4 << 10
)

// Drain reads the few bytes after the end of an answer, so that the connection can be reused.
func (r *Response) Drain() {
	r.call.limit = drainTime
	_, _ = io.CopyN(io.Discard, r, drainBytes)
}

// DrainEvent returns the event after the last one that matters, such as [DONE], if there is one and it comes at once. It
// is for streams whose events were read with Events.
func (r *Response) DrainEvent() (event sse.Event, ok bool) {
	r.call.limit = drainTime
	event, err := r.events.Next()
	return event, err == nil
}

// IsJSON reports whether the answer is one JSON value rather than a stream of events. If the Content-Type is
// neither, the first byte decides.
func (r *Response) IsJSON() (bool, error) {
	kind, _, _ := mime.ParseMediaType(r.http.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream":
		return false, nil
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return true, nil
	}
	start := make([]byte, 1)
	n, err := io.ReadFull(r, start)
	if err != nil && err != io.EOF {
		return false, r.ReadFailed(err)
	}
	r.peek = start[:n]
	switch string(r.peek) {
	case "{":
		return true, nil
	case "<":
		page, _ := io.ReadAll(io.LimitReader(r, maxQuote))
		return false, r.Failure(fmt.Sprintf("the answer is neither an event stream nor JSON but %s: %s", kind, r.quote(page)))
	}
	return false, nil
}

// Events are the events of an answer that is streamed. Characters that the upstream cut in two are whole in them.
type Events struct {
	*sse.Reader
	halves rawjson.Halves
}

// Next returns the next event; see [sse.Reader.Next].
func (e *Events) Next() (sse.Event, error) {
	event, err := e.Reader.Next()
	event.Data = e.halves.Join(event.Data)
	return event, err
}

// Events reads the answer as a stream.
func (r *Response) Events() *Events {
	r.events = &Events{Reader: sse.NewReader(r, sse.DefaultMaxBytes)}
	if r.forwarded != nil {
		r.events.KeepRaw()
	}
	return r.events
}

// answered reports the status and the headers of the answer.
func (r *Response) answered(refusal []byte) {
	if report := forward.AnsweredOf(r.call.ctx); report != nil {
		report(r.http.StatusCode, r.http.Header)
	}
	if r.forwarded != nil && r.forwarded.Answered != nil {
		r.forwarded.Answered(r.http.StatusCode, r.http.Header, refusal)
	}
}

// TakeWire returns the bytes of the answer that were read since the last call, up to the end of the newest event; "" where
// the request forwards no client's.
func (r *Response) TakeWire() string {
	switch {
	case r.forwarded == nil:
		return ""
	case r.events != nil:
		return string(r.events.TakeRaw())
	}
	wire := string(r.whole)
	r.whole = nil
	return wire
}

// DropWire removes the bytes that TakeWire would return: those of an event that does not belong to the answer.
func (r *Response) DropWire() { _ = r.TakeWire() }

// takeErrorWire is TakeWire for an answer that failed: it returns the upstream's own error event, and nothing of an event
// that could not be read, or of an error that came instead of an answer with a success status.
func (r *Response) takeErrorWire() string {
	if !r.said || r.events == nil {
		return ""
	}
	return r.TakeWire()
}

// JSON reads the whole answer into value and returns its bytes. A truncated answer gives the error of
// [Response.Unfinished], an invalid one that of [Response.Malformed] or, if it is an error instead of an
// answer, of [Response.Failed].
func (r *Response) JSON(value any) ([]byte, error) {
	data, err := r.all()
	if err != nil {
		return nil, err
	}
	r.whole = data
	err = json.Unmarshal(data, value)
	if err == nil {
		return data, nil
	}
	if failed, ok := r.Failed(data); ok {
		return nil, failed
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) {
		return nil, r.Unfinished()
	}
	return nil, r.Malformed(data, err)
}

func (r *Response) all() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxJSONAnswer+1))
	if err == nil && len(data) > maxJSONAnswer {
		err = fmt.Errorf("%w: more than %d bytes", errTooLong, maxJSONAnswer)
	}
	if err != nil {
		return nil, r.ReadFailed(err)
	}
	return data, nil
}

// ReadFailed explains an error while reading the answer.
func (r *Response) ReadFailed(err error) *failure.Failure {
	return r.call.failure("read the answer", err)
}

// Unfinished is the error of a stream that ended before the answer did.
func (r *Response) Unfinished() *failure.Failure {
	return &failure.Failure{
		Reason: failure.Network, Retryable: true,
		Message: fmt.Sprintf("read the answer: %s: the stream ended without its end", r.call.host),
	}
}

// Malformed is the error of data that violate the protocol.
func (r *Response) Malformed(data []byte, cause error) *failure.Failure {
	return r.Failure(fmt.Sprintf("this cannot be read (%s): %s", r.call.clean(cause.Error(), maxQuote), r.quote(data)))
}

// Failure is the error of an answer that cannot be used; message gives the reason.
func (r *Response) Failure(message string) *failure.Failure {
	return &failure.Failure{
		Reason: failure.Upstream, Retryable: true,
		Message: fmt.Sprintf("read the answer: %s: %s", r.call.host, message),
	}
}

func (r *Response) quote(data []byte) string {
	return strconv.Quote(r.call.clean(string(data), maxQuote))
}
