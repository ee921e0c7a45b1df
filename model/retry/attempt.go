package retry

import (
	"iter"

	"github.com/continuo-log/continuo/model"
)

// maxBuffered bounds how many deltas are held back; after that many without any text the answer counts as begun.
const maxBuffered = 100

// attempt is one request whose answer may still be discarded.
type attempt struct {
	yield    func(model.Delta, error) bool
	accepted func()        // called when the answer begins
	buffered []model.Delta // not yielded yet
	began    bool
	shown    bool // something was yielded
	stopped  bool // the consumer has stopped
}

// run yields an answer from its first visible piece on. It returns nil at its end, and when the consumer
// stopped.
func (a *attempt) run(answer iter.Seq2[model.Delta, error]) *model.Error {
	for delta, err := range answer {
		if err != nil {
			return model.AsError(err)
		}
		if !a.began {
			a.began = true
			a.accepted()
		}
		a.take(delta)
		if a.stopped {
			return nil
		}
	}
	a.show()
	return nil
}

func (a *attempt) take(delta model.Delta) {
	a.buffered = append(a.buffered, delta)
	if a.shown || delta.Visible() || delta.Finish != "" || len(a.buffered) > maxBuffered {
		a.show()
	}
}

// show yields the deltas that were held back.
func (a *attempt) show() {
	for _, delta := range a.buffered {
		a.shown = true
		if a.stopped = !a.yield(delta, nil); a.stopped {
			break
		}
	}
	a.buffered = a.buffered[:0]
}

// fail yields the error of the last attempt, after the deltas held back.
func (a *attempt) fail(err *model.Error) {
	a.show()
	if !a.stopped {
		a.yield(model.Delta{}, err)
	}
}
