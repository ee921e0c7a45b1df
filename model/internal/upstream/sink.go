package upstream

import (
	"context"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// Sink passes the deltas of an answer to their consumer, each with the bytes that it was read from where the request
// forwards a client's.
type Sink struct {
	Stopped bool // the consumer has stopped

	response *Response
	yield    func(model.Delta, error) bool
	failed   bool // the newest bytes are of an event that could not be read
}

// Yield passes a delta on.
func (s *Sink) Yield(delta model.Delta) {
	if !s.failed {
		delta.Wire = s.response.TakeWire()
	}
	delta.More = s.response.events != nil && s.response.events.Ready()
	s.Stopped = s.Stopped || !s.yield(delta, nil)
}

// YieldWire passes on the bytes of an event that added nothing else to the answer.
func (s *Sink) YieldWire() {
	if wire := s.response.TakeWire(); wire != "" {
		s.Stopped = s.Stopped || !s.yield(model.Delta{Wire: wire, More: s.response.events != nil && s.response.events.Ready()}, nil)
	}
}

// fail passes on how an answer failed, after the upstream's own error.
func (s *Sink) fail(err error) {
	if wire := s.response.takeErrorWire(); wire != "" && !s.Stopped {
		s.Stopped = !s.yield(model.Delta{Wire: wire}, nil)
	}
	if !s.Stopped {
		s.yield(model.Delta{}, model.AsError(err))
	}
}

// whole yields the body of an answer that is not one of the model, with the usage in the form of OpenAI's APIs.
func (s *Sink) whole() error {
	var answer struct {
		Model string
		Usage *struct {
			PromptTokens int `json:"prompt_tokens"`
		}
	}
	if _, err := s.response.JSON(&answer); err != nil {
		return err
	}
	delta := model.Delta{Model: answer.Model, Finish: "stop"}
	if answer.Usage != nil {
		delta.Usage = &continuo.Usage{InputTokens: answer.Usage.PromptTokens}
	}
	s.Yield(delta)
	return nil
}

// Answer is an answer in one protocol.
type Answer interface {
	// Read yields the upstream's answer, streamed or not.
	Read(response *Response) error
	// YieldRest yields what is complete of an answer that failed and was not yielded before.
	YieldRest()
}

// Stream posts a body and yields the answer; see [model.Model].
func (m *Model) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		response, err := m.Post(ctx, body)
		if err != nil {
			yield(model.Delta{}, model.AsError(err))
			return
		}
		defer response.Close()
		sink := &Sink{response: response, yield: yield}
		if response.forwarded != nil && response.forwarded.Other != "" {
			if err := sink.whole(); err != nil {
				sink.fail(err)
			}
			return
		}
		answer := m.protocol.Begin(sink)
		if err := answer.Read(response); err != nil {
			sink.failed = true
			answer.YieldRest()
			sink.fail(err)
		}
	}
}
