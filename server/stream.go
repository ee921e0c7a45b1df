package server

import (
	"errors"
	"iter"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/turn"
)

// errNothingToSend says that a turn has no events after the last one that the client has seen.
var errNothingToSend = errors.New("the turn has no further events")

// stream sends a turn's events as they come, each with its id. Out is nil for a stream that begins with its first event,
// so that an error before it is a plain HTTP error. A stream that has begun always ends with one done or one error.
func (s *server) stream(w http.ResponseWriter, r *http.Request, out *eventStream, events iter.Seq2[turn.Event, error], p *progress) error {
	defer func() {
		if out != nil {
			out.close()
		}
	}()
	for event, err := range events {
		if err != nil && out == nil {
			return p.failure(err)
		}
		if err != nil {
			return s.endStream(w, r, out, p, p.failure(err))
		}
		if out == nil {
			out = newEventStream(w, s.options.KeepAlive)
		}
		out.hold()
		if err := s.record(r.Context(), p, event); err != nil {
			return s.endStream(w, r, out, p, p.failure(err))
		}
		if out.sendTurnEvent(event, p); !event.More && !event.IsEnd() { // the end is followed by done or error
			out.flush()
		}
		if out.disconnected() {
			return nil // the turn continues without a listener
		}
	}
	if out == nil {
		return errNothingToSend
	}
	answer, failure := p.result()
	if failure != nil {
		return s.endStream(w, r, out, p, failure)
	}
	out.sendAs(p.lastID, "done", answer)
	out.flush()
	return nil
}

// endStream sends the last event of a stream that failed.
func (s *server) endStream(w http.ResponseWriter, r *http.Request, out *eventStream, prog *progress, err error) error {
	p := api.ProblemOf(err)
	s.logCause(w, r, p)
	out.sendAs(prog.lastID, "error", p)
	out.flush()
	return nil
}

// eventStream writes server-sent events, and a comment whenever it was idle for long. After the first write error,
// which it keeps, it drops everything.
type eventStream struct {
	mu        sync.Mutex
	out       *sse.Writer
	control   *http.ResponseController
	ended     bool // the last event has been written
	closed    bool // nothing may be written any more
	err       error
	keepAlive *time.Timer // no goroutine waits for it: there are many streams; nil before the first write
	interval  time.Duration
}

func newEventStream(w http.ResponseWriter, keepAlive time.Duration) *eventStream {
	return &eventStream{out: sse.NewWriter(w), control: http.NewResponseController(w), interval: keepAlive}
}

// sendHeader sends the header, for a client that would wait long for the first event.
func (e *eventStream) sendHeader() { e.write(e.control.Flush) }

// hold sends the following events together, with the next flush.
func (e *eventStream) hold() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out.Hold = true
}

// flush ends hold.
func (e *eventStream) flush() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out.Hold = false; e.err == nil {
		e.err = e.out.Flush()
	}
}

// sendKeepAlive sends a comment, and the next one after the interval.
func (e *eventStream) sendKeepAlive() {
	e.write(func() error { return e.out.Comment("keep-alive") })
}

// sendTurnEvent sends a turn's event to the client, under the event's id. The callers send the end of the turn.
func (e *eventStream) sendTurnEvent(event turn.Event, p *progress) {
	switch event.Kind {
	case turn.Started:
		e.sendAs(event.ID, "turn", p.ids)
	case turn.Planned:
		e.sendAs(event.ID, "context", api.ChatContextOf(event.Plan))
	case turn.ReasoningDelta:
		if event.Text != "" {
			e.sendAs(event.ID, "reasoning", api.TextEvent{Text: event.Text})
		}
	case turn.TextDelta:
		e.sendAs(event.ID, "delta", api.TextEvent{Text: event.Text})
	case turn.CallDelta:
		delta := event.Delta
		e.sendAs(event.ID, "tool_call_delta", api.ToolCallDeltaEvent{Index: delta.Index, ID: delta.ID, Name: delta.Name, Arguments: delta.Arguments})
	case turn.FellBack:
		failed := event.Attempt.Error
		e.sendAs(event.ID, "fallback", api.FallbackEvent{Model: event.Attempt.Round.Model, Reason: failed.Reason, Message: failed.Message})
	case turn.Called:
		e.sendAs(event.ID, "tool_call", api.ToolCallEvent{ID: event.Call.ID, Name: event.Call.Name, Arguments: event.Call.Arguments})
	case turn.Asked:
		e.sendAs(event.ID, "approval", api.ToolCallEvent{ID: event.Call.ID, Name: event.Call.Name, Arguments: event.Call.Arguments, ExpiresAt: event.Until})
	case turn.Decided:
		decision := event.Decision
		e.sendAs(event.ID, "decision", api.DecisionEvent{ToolCallID: event.Call.ID, Allowed: decision.Allowed, Reason: decision.Reason})
	case turn.ToolDone:
		e.sendAs(event.ID, "tool_result", api.ToolResult(event.Entry))
	}
}

// sendAs writes one event under an id, 0 for none.
func (e *eventStream) sendAs(id int64, name string, value any) {
	text := ""
	if id > 0 {
		text = strconv.FormatInt(id, 10)
	}
	e.send(text, name, value)
}

// send writes one event under an id, "" for none.
func (e *eventStream) send(id, name string, value any) {
	data, err := rawjson.Marshal(value)
	e.write(func() error {
		if err != nil {
			return err
		}
		e.ended = name == "done" || name == "error" || name == "end"
		return e.out.Write(sse.Event{ID: id, Type: name, Data: data})
	})
}

// writeLimit is how long a client may take to read one event.
const writeLimit = 30 * time.Second

// write performs one write, unless an earlier one failed. A comment follows it after the interval; none comes before the
// first write, since it would send the header.
func (e *eventStream) write(one func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.ended || e.closed {
		return
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(writeLimit)) // where the connection has deadlines
	e.err = one()
	if e.keepAlive == nil {
		e.keepAlive = time.AfterFunc(e.interval, e.sendKeepAlive)
	} else {
		e.keepAlive.Reset(e.interval)
	}
}

// disconnected reports whether the client has disconnected.
func (e *eventStream) disconnected() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err != nil
}

// close ends the stream: a stream without a last event, because the handler panicked, gets one.
func (e *eventStream) close() {
	e.flush()
	e.sendAs(0, "error", api.ProblemOf(errors.New("the stream broke off")))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed = true; e.keepAlive != nil {
		e.keepAlive.Stop()
	}
	_ = e.control.SetWriteDeadline(time.Time{}) // the connection's next answer has its own deadline
}
