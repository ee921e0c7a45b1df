package retry

import (
	"iter"

	"github.com/continuo-log/continuo/model"
)

// maxHeld bounds what is held back; an upstream that sends more of it before any text is taken as it is.
const maxHeld = 100

// attempt is one request whose answer may still be thrown away.
type attempt struct {
	yield    func(model.Delta, error) bool
	accepted func()        // called when the answer begins
	held     []model.Delta // not yielded yet
	began    bool
	shown    bool // something was yielded
	stopped  bool // the consumer wants no more
}

// run passes an answer on from its first visible piece. It returns nil at its end, and when the consumer
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

// show yields what was held back.
func (a *attempt) show() {
	for _, delta := range a.held {
		a.shown = true
		if a.stopped = !a.yield(delta, nil); a.stopped {
			break
		}
	}
	a.held = a.held[:0]
}

// fail yields the error of the last attempt, after what was held back of it.
func (a *attempt) fail(err *model.Error) {
	a.show()
	if !a.stopped {
		a.yield(model.Delta{}, err)
	}
}
