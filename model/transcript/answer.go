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

// answer turns the deltas of a text with events into those of the answer that it means.
type answer struct {
	give    func(model.Delta) bool
	stopped bool // the consumer wants no more
	vendor  bool // the upstream's data on the whole answer is passed on

	reader   render.EventReader
	call     *callText // the call under way, nil when it was given
	begun    bool      // the event under way has given text
	thought  bool      // there has been reasoning
	said     bool      // there has been text
	native   bool      // the newest reasoning is the upstream's own
	called   bool      // a call of the text was given
	calls    int       // given so far, the upstream's own too
	ids      model.CallIDs
	idPrefix string      // of the calls of the text
	upstream map[int]int // index of the upstream's own calls, by theirs

	over     bool            // no more of the upstream counts
	finished bool            // Finish was given
	later    json.RawMessage // vendor data that waits for it
}

// newAnswer begins the answer to a request. The ids of its calls come of the request, so that they are the
// same for the same answer, and others than those of the conversation's earlier calls.
func newAnswer(body []byte, give func(model.Delta) bool) *answer {
	return &answer{
		give: give, ids: model.CallIDs{}, idPrefix: idPrefix(body), upstream: map[int]int{},
	}
}

func idPrefix(body []byte) string {
	hash := sha256.Sum256(body)
	return fmt.Sprintf("call_%x_", hash[:4])
}

func (a *answer) yield(delta model.Delta) { a.stopped = a.stopped || !a.give(delta) }

// add takes the upstream's next delta.
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
		a.giveVendor()
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

// giveVendor passes on the upstream's data, once all content is given.
func (a *answer) giveVendor() {
	if a.later != nil {
		a.yield(model.Delta{Vendor: a.later})
		a.later = nil
	}
}

// addCall passes on a call of the upstream's own, under an index that none of the text has.
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

// read takes what the reader found.
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

// begin begins an event. What is not the model's to write ends the answer, and after a call so does
// everything but another one.
func (a *answer) begin(kind render.EventKind) {
	a.closeCall(render.CutNone)
	a.begun = false
	switch {
	case a.over:
	case kind == render.EventUser, kind == render.EventResult, a.called && kind != render.EventCall:
		a.over = true
	case kind == render.EventCall:
		a.call = &callText{}
	}
}

// think gives reasoning; what begins apart from the reasoning before it gets an empty line between.
func (a *answer) think(text string, apart bool) {
	if apart && a.thought {
		text = "\n\n" + text
	}
	a.thought = true
	a.yield(model.Delta{Reasoning: text})
}

func (a *answer) respond(text string) {
	if !a.begun && a.said {
		text = "\n\n" + text
	}
	a.begun, a.said = true, true
	a.yield(model.Delta{Text: text})
}

// readCall adds to the call under way and gives it as soon as it is whole.
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

// closeCall gives the call under way, if there is one.
func (a *answer) closeCall(cut render.CallCut) {
	if a.call == nil {
		return
	}
	name, arguments := a.call.read(cut)
	a.giveCall(model.ToolCallDelta{Name: name, Arguments: arguments, Done: true})
	a.call = nil
}

func (a *answer) giveCall(delta model.ToolCallDelta) {
	delta.Index, delta.Type = a.calls, "function"
	delta.ID = a.ids.Take(a.idPrefix+strconv.Itoa(a.calls), a.calls)
	a.calls++
	a.called = true
	a.over = a.over || a.calls >= maxCalls
	a.yield(model.Delta{ToolCall: &delta})
}

// finish ends the answer for the upstream's reason.
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

// end ends the answer where the upstream did not, because it is over.
func (a *answer) end() {
	if !a.finished && !a.stopped {
		a.finish("stop")
	}
}

// fail gives what is left when the upstream failed. A call that was under way stays a part of one; what
// was held back said nothing yet.
func (a *answer) fail() {
	if a.stopped {
		return
	}
	if a.call != nil && !a.over {
		name, arguments := a.call.readPart()
		a.giveCall(model.ToolCallDelta{Name: name, Arguments: arguments})
	}
	a.giveVendor()
}
