package modeltest

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// Script is a model that answers each request with the next of its answers, and with an error after the last.
// It is for tests of code that uses models, and safe for concurrent use.
type Script struct {
	Answers  [][]Step
	requests atomic.Int64
}

// Step is a piece of a scripted answer: a wait, then a delta, or an error that ends the answer.
type Step struct {
	Wait  time.Duration
	Delta model.Delta
	Err   *model.Error
}

// Text is a step that yields text.
func Text(text string) Step { return Step{Delta: model.Delta{Text: text}} }

// Finish is a step that ends an answer successfully.
func Finish() Step { return Step{Delta: model.Delta{Finish: "stop"}} }

// Fails is a step that fails with a retryable error.
func Fails(reason continuo.FailureReason) Step {
	return Step{Err: &model.Error{Reason: reason, Retryable: true, Message: "it went wrong"}}
}

// Requests returns how many requests were made.
func (s *Script) Requests() int { return int(s.requests.Load()) }

// Info describes the script as a model.
func (s *Script) Info() model.Info {
	return model.Info{Provider: "script", Name: "script", Protocol: model.ProtocolOpenAIChat}
}

// Stream plays the next answer; see [model.Model].
func (s *Script) Stream(ctx context.Context, _ []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		n := int(s.requests.Add(1)) - 1
		if n >= len(s.Answers) {
			yield(model.Delta{}, &model.Error{Reason: continuo.ReasonUpstream, Message: "the script is at its end"})
			return
		}
		for _, step := range s.Answers[n] {
			if ended := wait(ctx, step.Wait); ended != nil {
				yield(model.Delta{}, ended)
				return
			}
			if step.Err != nil {
				yield(model.Delta{}, step.Err)
				return
			}
			if !yield(step.Delta, nil) {
				return
			}
		}
	}
}

// wait waits, and returns the error of the context if it ends first.
func wait(ctx context.Context, length time.Duration) error {
	if length > 0 {
		timer := time.NewTimer(length)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if ended := model.ContextError(ctx); ended != nil {
		return ended
	}
	return nil
}
