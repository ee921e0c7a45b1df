package retry

import (
	"iter"

	"github.com/continuo-log/continuo/model"
)

// maxHeld bounds how many deltas are held back; after that many without any text the answer counts as begun.
const maxHeld = 100

// attempt is one request whose answer may still be discarded.
type attempt struct {
	yield    func(model.Delta, error) bool
	accepted func()        // called when the answer begins
	held     []model.Delta // not yielded yet
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
	a.held = append(a.held, delta)
	if a.shown || delta.Visible() || delta.Finish != "" || len(a.held) > maxHeld {
		a.show()
	}
}

// show yields the deltas that were held back.
func (a *attempt) show() {
	for _, delta := range a.held {
		a.shown = true
		if a.stopped = !a.yield(delta, nil); a.stopped {
			break
		}
	}
	a.held = a.held[:0]
}

// fail yields the error of the last attempt, after the deltas held back.
func (a *attempt) fail(err *model.Error) {
	a.show()
	if !a.stopped {
		a.yield(model.Delta{}, err)
	}
}
