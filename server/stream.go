package server

import (
	"errors"
	"net/http"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/turn"
)

// streamChat sends a turn's events as they come. An error before the first event is answered like any
// other; after it, the stream always ends with one done or one error.
func (s *server) streamChat(w http.ResponseWriter, r *http.Request, chat *engine.Chat, p *progress) error {
	var out *eventStream
	defer func() {
		if out != nil {
			out.close()
		}
	}()
	for event, err := range chat.Events {
		if err != nil && out == nil {
			return p.failure(err)
		}
		if err != nil {
			return s.endStream(w, r, out, p.failure(err))
		}
		if out == nil {
			out = newEventStream(w, s.options.KeepAlive)
		}
		p.take(event)
		if out.tell(event, p); out.gone() {
			return nil // the turn goes on without a listener
		}
	}
	if out == nil {
		return p.failure(errors.New("the turn yielded nothing"))
	}
	answer, failure := p.end(r)
	if p.last != nil && p.rounds == 0 { // the turn was over before: say what its listeners heard
		out.send("context", contextOf(p.planOf(r, p.last)))
		if text := p.last.Content.String(); text != "" {
			out.send("delta", textEvent{text})
		}
	}
	if failure != nil {
		return s.endStream(w, r, out, failure)
	}
	out.send("done", answer)
	return nil
}

// endStream sends the last event of a stream that failed.
func (s *server) endStream(w http.ResponseWriter, r *http.Request, out *eventStream, err error) error {
	p := problemOf(err)
	s.logCause(w, r, p)
	out.send("error", p)
	return nil
}

// The data of events.
type (
	textEvent struct {
		Text string `json:"text"`
	}
	toolCallEvent struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	toolResultEvent struct {
		ToolCallID string `json:"tool_call_id"`
		Name       string `json:"name"`
		Outcome    string `json:"outcome"`
		Failed     bool   `json:"failed"`
		// Content is the beginning of the output; Truncated says that there is more at OutputRef.
		Content    string `json:"content"`
		Truncated  bool   `json:"truncated"`
		OutputRef  string `json:"output_ref,omitempty"`
		DurationMS int64  `json:"duration_ms"`
	}
)

// maxShownOutput bounds how much of a tool's output an event carries, in Unicode characters.
const maxShownOutput = 2000

func toolResult(entry *continuo.Entry) toolResultEvent {
	event := toolResultEvent{
		ToolCallID: entry.ToolCallID, Name: entry.ToolName, Outcome: entry.Outcome, Failed: entry.PartType == "tool_error",
		Content: entry.Content.String(), OutputRef: entry.OutputRef, DurationMS: entry.DurationMS,
	}
	if shown := []rune(event.Content); len(shown) > maxShownOutput {
		event.Content, event.Truncated = string(shown[:maxShownOutput]), true
	}
	return event
}

// eventStream writes server-sent events, and a comment whenever it was silent for long. Write errors are
// kept: after the first one, everything is dropped.
type eventStream struct {
	mu        sync.Mutex
	out       *sse.Writer
	control   *http.ResponseController
	ended     bool // the last event is written
	err       error
	keepAlive *time.Ticker
	interval  time.Duration
	stop      chan struct{}
	silence   sync.WaitGroup
}

func newEventStream(w http.ResponseWriter, keepAlive time.Duration) *eventStream {
	e := &eventStream{
		out: sse.NewWriter(w), control: http.NewResponseController(w),
		keepAlive: time.NewTicker(keepAlive), interval: keepAlive, stop: make(chan struct{}),
	}
	e.silence.Go(e.breakSilence)
	return e
}

func (e *eventStream) breakSilence() {
	for {
		select {
		case <-e.stop:
			return
		case <-e.keepAlive.C:
			e.write(func() error { return e.out.Comment("keep-alive") })
		}
	}
}

// tell sends what a client wants to know of a turn's event. Its end is sent by others.
func (e *eventStream) tell(event turn.Event, p *progress) {
	switch event.Kind {
	case turn.Started:
		e.send("turn", p.ids)
	case turn.Planned:
		e.send("context", contextOf(event.Plan))
	case turn.ReasoningDelta:
		e.send("reasoning", textEvent{event.Text})
	case turn.TextDelta:
		e.send("delta", textEvent{event.Text})
	case turn.Answered:
		for _, call := range event.Entry.ToolCalls {
			e.send("tool_call", toolCallEvent{call.ID, call.Name, call.Arguments})
		}
	case turn.ToolDone:
		e.send("tool_result", toolResult(event.Entry))
	}
}

// send writes one event.
func (e *eventStream) send(name string, value any) {
	data, err := rawjson.Marshal(value)
	e.write(func() error {
		if err != nil {
			return err
		}
		e.ended = name == "done" || name == "error"
		return e.out.Write(sse.Event{Type: name, Data: data})
	})
	e.keepAlive.Reset(e.interval)
}

// writeLimit is how long a client may take to read one event.
const writeLimit = 30 * time.Second

// write does one write, unless an earlier one failed.
func (e *eventStream) write(one func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.ended {
		return
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(writeLimit)) // where the connection has deadlines
	e.err = one()
}

// gone reports whether nobody listens any more.
func (e *eventStream) gone() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err != nil
}

// close ends the stream: a stream that has no last event yet, because the program failed, gets one.
func (e *eventStream) close() {
	e.send("error", problemOf(errors.New("the stream broke off")))
	e.keepAlive.Stop()
	close(e.stop)
	e.silence.Wait()
	_ = e.control.SetWriteDeadline(time.Time{}) // the connection's next answer has its own time
}
