package command

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/child"
	"github.com/continuo-log/continuo/internal/wire/prompt"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/timed"
)

// Stream starts the program and yields what it prints; see [model.Model].
func (m *Model) Stream(caller context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return timed.Stream(caller, m.options.Name, m.options.Timeout, func(ctx context.Context, emit func(model.Delta) bool) (string, error) {
		a := &answer{options: m.options, listener: emit}
		return "stop", a.run(ctx, body)
	})
}

// answer is one answer in progress.
type answer struct {
	options  Options
	listener func(model.Delta) bool
	plain    child.Plain
	printed  int // bytes
	hasText  bool
	stopped  bool // the consumer has stopped
}

// run starts the program, yields its output, and returns when all its processes are gone.
func (a *answer) run(ctx context.Context, body []byte) error {
	request, err := prompt.Parse(body)
	if err != nil {
		return err
	}
	command, input, err := a.options.invocation(request)
	if err != nil {
		return fmt.Errorf("%s: %w", a.options.Name, err)
	}
	process, err := child.Start(child.Options{Command: command, Dir: a.options.Dir, Env: a.options.Env, Grace: a.options.Grace})
	if err != nil {
		return fmt.Errorf("%w; install the program, or correct %s", err, a.options.Setting)
	}
	defer process.End()
	defer context.AfterFunc(ctx, process.Stop)()
	var writing sync.WaitGroup
	defer writing.Wait()
	defer process.Stop() // runs before the others: it ends a blocked write
	writing.Go(func() {
		defer process.CloseInput()
		_, _ = io.WriteString(process, input) // a program need not read it
	})
	if err := a.read(process); err != nil || a.stopped {
		return err
	}
	<-process.Ended()
	process.End()
	if err := process.Failure(); err != nil {
		return err
	}
	if !a.hasText {
		return fmt.Errorf("%s ended without an answer: it printed nothing on stdout%s", a.options.Name, process.Stderr())
	}
	return nil
}

// read yields the program's output until its end.
func (a *answer) read(process *child.Process) error {
	buffer := make([]byte, 32<<10)
	for !a.stopped {
		n, err := process.Read(buffer)
		if err != nil {
			a.emit(a.plain.End())
			return nil
		}
		room := a.options.MaxOutput - a.printed
		a.printed += n
		a.emit(a.plain.Text(buffer[:min(n, room)]))
		if n > room {
			return &model.Error{Reason: continuo.ReasonTurnLimit, Message: fmt.Sprintf(
				"%s printed more than the maximum of %d bytes", a.options.Name, a.options.MaxOutput)}
		}
	}
	return nil
}

func (a *answer) emit(text string) {
	if text == "" || a.stopped {
		return
	}
	a.hasText = true
	a.stopped = !a.listener(model.Delta{Text: text})
}
