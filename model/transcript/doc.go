// Package transcript lets a model without tool calls of its own think, call tools and answer: its answers,
// which are text in events with § (docs in render/transcript.md), become the same deltas that a model with
// tool calls gives. So the log holds ordinary entries, and the next round may be another model's.
//
//	§think:   reasoning
//	§respond: text; so is what stands before the first event
//	§call:    a call, given whole when its JSON is; several may follow each other
//
// After a call the answer is over, whatever else the upstream sends: a model that goes on there invents the
// result. The upstream's request is then ended, and what it would have counted as usage is not known.
//
// A call that cannot be read becomes one of [render.MalformedCall], whose result explains the mistake. Only
// where the upstream fails in the middle of a call is it a partial call, as of any model.
//
// Pitfalls: what the upstream says of its answer as a whole (an Anthropic answer's blocks, signatures of
// thinking) is of the text with the events and is dropped, because the entry does not hold that text. In a
// chain of wrappers this one stands outside of limits on the time between deltas, because a call is
// held back until it is whole, and inside of retries.
package transcript

import (
	"context"
	"fmt"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// Model is a model that answers in events. It is safe for concurrent use.
type Model struct {
	model.Model
}

// New wraps a model that takes the wire format of its Info; the wrapped one takes the transcript in it.
func New(inner model.Model) *Model { return &Model{Model: inner} }

// Info is the wrapped model's, with the protocol that has the transcript.
func (m *Model) Info() model.Info {
	info := m.Model.Info()
	info.Protocol += model.TranscriptSuffix
	return info
}

// maxText bounds the text of one answer in bytes, read or held back.
const maxText = 16 << 20

// Stream sends body and yields the answer that its events make; see [model.Model].
func (m *Model) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := newAnswer(body, func(delta model.Delta) bool { return yield(delta, nil) })
		a.vendor = m.Model.Info().Protocol == model.ProtocolOpenAIChat
		text := 0
		for delta, err := range m.Model.Stream(ctx, body) {
			if text += len(delta.Text); err == nil && text > maxText {
				err = &model.Error{Reason: continuo.ReasonUpstream, Message: fmt.Sprintf("the answer is longer than %d bytes", maxText)}
			}
			if err != nil {
				if a.fail(); !a.stopped {
					yield(model.Delta{}, err)
				}
				return
			}
			if a.add(delta); a.over || a.stopped {
				break
			}
		}
		a.end()
	}
}
