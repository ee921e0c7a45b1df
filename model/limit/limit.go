// Package limit puts timeouts on a model's answer: it must begin, and continue, in time.
//
// A request has two limits: until the first visible piece, and between any two pieces after it. Only the time
// spent waiting for the model counts, not the consumer's. The client limits the time to connect; the context
// limits a whole turn.
//
// Pitfalls: a retry waits between requests, so the retry wraps this wrapper, which covers one request.
package limit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// Options sets the limits.
type Options struct {
	// FirstToken bounds the time until the first text, reasoning or call. Default 5 min.
	FirstToken time.Duration
	// Idle bounds how long the model may send nothing once it has begun. Default 2 min.
	Idle time.Duration
	// FirstTokenSetting and IdleSetting are the names of the two settings in messages. Default none.
	FirstTokenSetting, IdleSetting string
}

// Model is a model whose requests have limits. It is safe for concurrent use.
type Model struct {
	model.Model
	options Options
}

// New wraps a model.
func New(inner model.Model, options Options) *Model {
	options.FirstToken = cmp.Or(options.FirstToken, 5*time.Minute)
	options.Idle = cmp.Or(options.Idle, 2*time.Minute)
	return &Model{Model: inner, options: options}
}

var (
	errFirstToken = errors.New("no first token")
	errIdle       = errors.New("idle")
)

// Stream sends body and yields the answer; see [model.Model]. When a limit is exceeded, the error has the
// reason timeout and names the limit.
func (m *Model) Stream(caller context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		ctx, cancel := context.WithCancelCause(caller)
		defer cancel(nil)
		first := time.AfterFunc(m.options.FirstToken, func() { cancel(errFirstToken) })
		defer first.Stop()
		idle := time.AfterFunc(m.options.Idle, func() { cancel(errIdle) })
		defer idle.Stop()
		idle.Stop()
		begun := false
		for delta, err := range m.Model.Stream(ctx, body) {
			if err != nil {
				yield(model.Delta{}, m.explained(caller, ctx, err))
				return
			}
			if begun = begun || delta.Visible(); begun {
				first.Stop()
				idle.Stop()
			}
			if !yield(delta, nil) {
				return
			}
			if begun {
				idle.Reset(m.options.Idle)
			}
		}
	}
}

// explained adds the name of the limit that ended a request, if one did.
func (m *Model) explained(caller, ctx context.Context, err error) error {
	if caller.Err() != nil {
		return err
	}
	timeout := &model.Error{Reason: continuo.ReasonTimeout, Retryable: true, Costly: true}
	switch context.Cause(ctx) {
	case errFirstToken:
		timeout.Message = fmt.Sprintf("the model gave no first token within %v, the first token limit%s", m.options.FirstToken, inBrackets(m.options.FirstTokenSetting))
	case errIdle:
		timeout.Message = fmt.Sprintf("the model sent nothing for %v, the idle limit%s", m.options.Idle, inBrackets(m.options.IdleSetting))
	default:
		return err
	}
	return timeout
}

// inBrackets returns a note in brackets to append to a text; "" for "".
func inBrackets(note string) string {
	if note == "" {
		return ""
	}
	return " (" + note + ")"
}
