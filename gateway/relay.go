package gateway

import (
	"io"
	"net/http"
	"strings"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// relay writes the answer of an upstream to a client, byte for byte.
type relay struct {
	endpoint endpoint
	out      http.ResponseWriter
	matched  *matched
	streamed bool    // the client asked for a stream
	encoder  encoder // nil for a request that is forwarded
	answer   upstreamAnswer

	begun bool   // the client's header was written
	last  string // the newest bytes that were written
	held  string // the end of the answer, until it is in the log
	// control flushes what was written; unsent says that something was, and more that the next event follows at once.
	control      *http.ResponseController
	unsent, more bool
}

// forwarding is what a client's request adds to its body, with the client's own credentials where withCredentials says so.
func (y *relay) forwarding(r *http.Request, modelName string, withCredentials bool) *model.Forwarding {
	header := requestHeader(r.Header)
	if withCredentials {
		addCredentials(header, r.Header)
	}
	return &model.Forwarding{Header: header, KeepsKey: withCredentials, Query: sentQuery(r.URL, withCredentials), Path: y.endpoint.path(modelName), Answered: y.answer.reportRefusal}
}

// run writes the answer of a turn as it comes. It returns an error only if nothing was written.
func (y *relay) run(chat *engine.Chat) error {
	y.out.Header().Set(conversationHeader, chat.Conversation.ID)
	y.out.Header().Set("X-Continuo-Turn", chat.TurnID)
	y.out.Header().Set("X-Continuo-Matched", string(y.matched.By))
	if y.encoder != nil {
		return y.encode(chat)
	}
	for event, err := range chat.Events {
		nameOmitted(y.out.Header(), &event)
		y.more = event.More
		if err == nil && !(y.forward(&event) && y.flush()) {
			return nil // the client has left; leaving the loop stops the turn
		}
		if err == nil && event.Kind == turn.Failed {
			err = modelFailed(event.Entry.Error)
		}
		if err != nil {
			return y.fail(err)
		}
	}
	if y.begun && y.isStream() && !y.endpoint.ends(y.last) {
		y.writeLast(y.endpoint.lastEvent())
	}
	return nil
}

// forward writes the bytes that came with an event. The end of an answer is held back until the answer is in the log: a
// client that has the end has an answer that is not lost.
func (y *relay) forward(event *turn.Event) bool {
	wire := event.Wire
	switch {
	case event.Kind == turn.Answered, event.IsEnd():
		wire, y.held = y.held, ""
	case wire != "" && (y.held != "" || !y.streamed || y.endpoint.ends(wire)):
		y.held += wire
		return true
	}
	return wire == "" || y.write(wire)
}

// isStream reports whether the answer is a stream of events.
func (y *relay) isStream() bool {
	return strings.HasPrefix(y.out.Header().Get("Content-Type"), "text/event-stream")
}

// writeLast writes the last event of a stream, which may have broken off within the one before.
func (y *relay) writeLast(wire string) {
	if wire != "" && !strings.HasSuffix(y.last, "\n\n") && !strings.HasSuffix(y.last, "\r\n\r\n") {
		wire = "\n\n" + wire
	}
	if wire != "" {
		y.write(wire)
	}
}

// encoder writes an answer in the form of an endpoint.
type encoder interface {
	// streams reports whether the client asked for a stream.
	streams() bool
	// begin and event return what the stream begins with, and what an event adds to it: for the end of an answer that
	// failed "" where the endpoint's errorEvent is its end. They are called for an answer that is not streamed, too.
	begin(chat *engine.Chat) string
	event(event *turn.Event) string
	// whole returns the answer as one value, at its end.
	whole(chat *engine.Chat, answer *turn.Event) any
}

// encode writes the answer of a turn whose request was built from the log. A stream begins with the first piece of the
// answer, so that one that fails before has the status of an error.
func (y *relay) encode(chat *engine.Chat) error {
	head := y.encoder.begin(chat)
	for event, err := range chat.Events {
		if err != nil {
			return y.fail(err)
		}
		nameOmitted(y.out.Header(), &event)
		y.more = event.More
		wire := y.encoder.event(&event)
		switch {
		case event.Kind == turn.Started:
			head += wire
		case event.Kind == turn.Failed && y.begun && wire != "":
			y.more = false
			y.write(wire)
			return nil
		case event.Kind == turn.Failed:
			return y.fail(modelFailed(event.Entry.Error))
		case y.encoder.streams():
			if !y.begun && wire != "" {
				y.out.Header().Set("Content-Type", "text/event-stream")
				wire = head + wire
			}
			if wire != "" && !y.write(wire) || !y.flush() {
				return nil // the client has left; leaving the loop stops the turn
			}
		case event.Kind == turn.Finished:
			y.answer.passLimits(y.out.Header())
			writeJSON(y.out, http.StatusOK, y.encoder.whole(chat, &event))
		}
	}
	return nil
}

// write sends bytes of the answer. It reports false when the client has left.
func (y *relay) write(wire string) bool {
	if !y.begun {
		y.begin(http.StatusOK)
	}
	y.last = wire
	y.unsent = true
	_, err := io.WriteString(y.out, wire)
	return err == nil && y.flush()
}

// flush sends what was written, unless the next event follows at once. It reports false when the client has left.
func (y *relay) flush() bool {
	if !y.unsent || y.more {
		return true
	}
	if y.unsent = false; y.control == nil {
		y.control = http.NewResponseController(y.out)
	}
	return y.control.Flush() == nil
}

// begin writes the header of the answer: the upstream's, and ours.
func (y *relay) begin(status int) {
	y.begun = true
	if _, header, _ := y.answer.get(); y.encoder == nil {
		copyResponseHeader(y.out.Header(), header)
	} else {
		passLimits(y.out.Header(), header)
	}
	if y.out.Header().Get("Content-Type") == "" { // the answer is that of an earlier request
		y.out.Header().Set("Content-Type", "application/json")
		if y.streamed {
			y.out.Header().Set("Content-Type", "text/event-stream")
		}
	}
	y.out.WriteHeader(status)
}

// fail ends an answer that failed: with the upstream's own refusal, or its own error event where it sent one, else with
// the error in the protocol's form.
func (y *relay) fail(err error) error {
	y.more = false
	if y.begun {
		if !y.endpoint.ends(y.last) {
			y.writeLast(y.endpoint.errorEvent(api.ProblemOf(err), y.last))
		}
		return nil
	}
	status, header, refusal := y.answer.get()
	if refusal == nil {
		passLimits(y.out.Header(), header)
		return err
	}
	y.begin(status)
	_, _ = y.out.Write(refusal)
	return nil
}
