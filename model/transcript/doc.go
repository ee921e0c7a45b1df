// Package transcript lets a model without native tool calls think, call tools and answer: it converts the
// model's answers, which are text in events with § (see render/transcript.md), to the deltas that a model
// with tool calls yields. So the log holds ordinary entries, and another model can answer the next round.
//
//	§think:   reasoning
//	§respond: text; text before the first event counts as this
//	§call:    a call, given whole when its JSON is; several may follow each other
//
// After a call the answer is over, even if the upstream sends more: a model that continues there invents the
// result. The upstream's request is then ended, and its usage is unknown.
//
// A call that cannot be parsed becomes a call of [render.MalformedCall], whose result explains the mistake.
// Only if the upstream fails in the middle of a call is it a partial call, as with any model.
//
// Pitfalls: the upstream's data on its whole answer (an Anthropic answer's blocks, signatures of thinking)
// describe the text with the events and are dropped, because the entry does not hold that text. In a chain of
// wrappers this one belongs outside of limits on the time between deltas, because it holds a call back until
// it is complete, and inside of retries.
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

// New wraps a model that accepts the wire format of its Info, and sends it transcripts in that format.
func New(inner model.Model) *Model { return &Model{Model: inner} }

// Info returns the wrapped model's, with the suffix of transcripts in its protocol.
func (m *Model) Info() model.Info {
	info := m.Model.Info()
	info.Protocol += model.TranscriptSuffix
	return info
}

// maxText bounds the text of one answer in bytes, parsed or held back.
const maxText = 16 << 20

// Stream sends body and yields the answer that its events describe; see [model.Model].
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
