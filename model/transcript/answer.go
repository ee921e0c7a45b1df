package transcript

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
)

// maxCalls bounds the calls of one answer.
const maxCalls = 128

// answer converts the deltas of a text with events into those of the answer that the events describe.
type answer struct {
	sink    func(model.Delta) bool
	stopped bool // the consumer has stopped
	vendor  bool // the upstream's data on the whole answer are passed on

	reader   render.EventReader
	call     *callText // the call in progress, nil when it was yielded
	begun    bool      // the current event has yielded text
	thought  bool      // there has been reasoning
	hasText  bool      // there has been text
	native   bool      // the newest reasoning is the upstream's own
	hasCall  bool      // a call of the text was yielded
	calls    int       // number yielded so far, the upstream's own included
	ids      model.CallIDs
	idPrefix string      // of the calls of the text
	upstream map[int]int // by the index of the upstream's own calls: the yielded index

	over     bool            // the rest of the upstream's answer is ignored
	finished bool            // Finish was yielded
	later    json.RawMessage // vendor data to yield after Finish
}

// newAnswer begins the answer to a request. The ids of its calls are derived from the request: they are the
// same for the same request, and differ from those of the conversation's earlier calls.
func newAnswer(body []byte, give func(model.Delta) bool) *answer {
	return &answer{
		sink: give, ids: model.CallIDs{}, idPrefix: idPrefix(body), upstream: map[int]int{},
	}
}

func idPrefix(body []byte) string {
	hash := sha256.Sum256(body)
	return fmt.Sprintf("call_%x_", hash[:4])
}

func (a *answer) yield(delta model.Delta) { a.stopped = a.stopped || !a.sink(delta) }

// add handles the upstream's next delta.
func (a *answer) add(delta model.Delta) {
	if delta.Model != "" || delta.Usage != nil {
		a.yield(model.Delta{Model: delta.Model, Usage: delta.Usage})
	}
	if !a.finished {
		a.addContent(delta)
	}
	if delta.Finish != "" && !a.finished {
		a.finish(delta.Finish)
	}
	if delta.Vendor != nil && a.vendor {
		a.later = delta.Vendor
	}
	if a.finished {
		a.yieldVendor()
	}
}

func (a *answer) addContent(delta model.Delta) {
	if delta.Reasoning != "" {
		a.think(delta.Reasoning, !a.native)
		a.native = true
	}
	if delta.Text != "" {
		a.read(a.reader.Write(delta.Text))
	}
	if delta.ToolCall != nil && !a.over {
		a.addCall(*delta.ToolCall)
	}
}

// yieldVendor yields the upstream's data, after all content.
func (a *answer) yieldVendor() {
	if a.later != nil {
		a.yield(model.Delta{Vendor: a.later})
		a.later = nil
	}
}

// addCall yields one of the upstream's own calls, under an index that no call of the text has.
func (a *answer) addCall(delta model.ToolCallDelta) {
	index, known := a.upstream[delta.Index]
	if !known {
		index = a.calls
		a.upstream[delta.Index] = index
		a.calls++
		delta.ID = a.ids.Take(delta.ID, index)
	}
	delta.Index = index
	a.yield(model.Delta{ToolCall: &delta})
}

// read handles the pieces of events that the reader found.
func (a *answer) read(pieces []render.Piece) {
	for _, piece := range pieces {
		switch {
		case a.over || a.stopped:
			return
		case piece.Begin:
			a.begin(piece.Kind)
		case piece.Kind == render.EventThink:
			a.think(piece.Text, !a.begun || a.native)
			a.begun, a.native = true, false
		case piece.Kind == render.EventRespond:
			a.respond(piece.Text)
		case piece.Kind == render.EventCall:
			a.readCall(piece.Text)
		}
	}
}

// begin begins an event. An event that a model must not write ends the answer; after a call, so does any
// event except another call.
func (a *answer) begin(kind render.EventKind) {
	a.closeCall(render.CutNone)
	a.begun = false
	switch {
	case a.over:
	case kind == render.EventUser, kind == render.EventResult, a.hasCall && kind != render.EventCall:
		a.over = true
	case kind == render.EventCall:
		a.call = &callText{}
	}
}

// think yields reasoning; reasoning apart from that before it is separated by an empty line.
func (a *answer) think(text string, apart bool) {
	if apart && a.thought {
		text = "\n\n" + text
	}
	a.thought = true
	a.yield(model.Delta{Reasoning: text})
}

func (a *answer) respond(text string) {
	if !a.begun && a.hasText {
		text = "\n\n" + text
	}
	a.begun, a.hasText = true, true
	a.yield(model.Delta{Text: text})
}

// readCall adds to the current call and yields it as soon as it is complete.
func (a *answer) readCall(text string) {
	if a.call != nil {
		if text = a.call.add(text); !a.call.over {
			return
		}
		cut := render.CutNone
		if a.call.tooLong {
			cut = render.CutLong
		}
		a.closeCall(cut)
		a.over = a.over || cut == render.CutLong
	}
	a.over = a.over || !isClosing(text)
}

// closeCall yields the current call, if there is one.
func (a *answer) closeCall(cut render.CallCut) {
	if a.call == nil {
		return
	}
	name, arguments := a.call.read(cut)
	a.yieldCall(model.ToolCallDelta{Name: name, Arguments: arguments, Done: true})
	a.call = nil
}

func (a *answer) yieldCall(delta model.ToolCallDelta) {
	delta.Index, delta.Type = a.calls, "function"
	delta.ID = a.ids.Take(a.idPrefix+strconv.Itoa(a.calls), a.calls)
	a.calls++
	a.hasCall = true
	a.over = a.over || a.calls >= maxCalls
	a.yield(model.Delta{ToolCall: &delta})
}

// finish ends the answer for the upstream's finish reason.
func (a *answer) finish(reason string) {
	if !a.over {
		a.read(a.reader.End())
	}
	cut := render.CutNone
	if reason == "length" {
		cut = render.CutLength
	}
	a.closeCall(cut)
	switch {
	case a.calls > 0 && (reason == "stop" || a.over):
		reason = "tool_calls"
	case a.over:
		reason = "stop"
	}
	a.finished = true
	a.yield(model.Delta{Finish: reason})
}

// end ends the answer before the upstream does, because it is complete.
func (a *answer) end() {
	if !a.finished && !a.stopped {
		a.finish("stop")
	}
}

// fail yields the rest after a failure of the upstream. A call in progress becomes a partial call; text held
// back is dropped.
func (a *answer) fail() {
	if a.stopped {
		return
	}
	if a.call != nil && !a.over {
		name, arguments := a.call.readPart()
		a.yieldCall(model.ToolCallDelta{Name: name, Arguments: arguments})
	}
	a.yieldVendor()
}
