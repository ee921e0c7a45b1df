// Package timed implements what models that are programs share: a time limit for an answer, and the reason for which it
// ended.
package timed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// Stream returns a stream of the deltas that run passes to tell, until run returns a finish reason or an
// error. The context of run ends with caller, and after the time limit of the program of that name. When tell
// returns false, the consumer has stopped: further deltas are dropped, and run should return.
func Stream(caller context.Context, name string, timeout time.Duration,
	run func(ctx context.Context, emit func(model.Delta) bool) (finish string, err error),
) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		stopped, finish := false, ""
		emit := func(delta model.Delta) bool {
			stopped = stopped || !yield(delta, nil)
			return !stopped
		}
		err := Within(caller, name, timeout, func(ctx context.Context) (err error) {
			finish, err = run(ctx, emit)
			return err
		})
		switch {
		case stopped:
		case err != nil:
			yield(model.Delta{}, err)
		default:
			yield(model.Delta{Finish: finish}, nil)
		}
	}
}

// Within runs a function with a time limit, and returns its error, always as a *model.Error: if a context
// ended the function early, that cause counts more than the function's own error.
func Within(caller context.Context, name string, timeout time.Duration, run func(ctx context.Context) error) error {
	if ended := model.ContextError(caller); ended != nil {
		return ended
	}
	ctx, cancel := context.WithTimeout(caller, timeout)
	defer cancel()
	err := run(ctx)
	if ended := model.ContextError(caller); ended != nil {
		return ended
	}
	if ctx.Err() != nil {
		return &model.Error{
			Reason: continuo.ReasonTimeout, Err: context.DeadlineExceeded,
			Message: fmt.Sprintf("%s did not end within %s, which is the time that it has", name, timeout),
		}
	}
	return asError(err)
}

// asError converts an error; one without a reason is the upstream's fault.
func asError(err error) error {
	var known *model.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	}
	return &model.Error{Reason: continuo.ReasonUpstream, Message: err.Error(), Err: err}
}
