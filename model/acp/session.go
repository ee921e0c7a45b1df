package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	acp "github.com/coder/acp-go-sdk"

	"github.com/continuo-log/continuo/internal/child"
	"github.com/continuo-log/continuo/internal/wire/prompt"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/internal/timed"
)

// Open starts the agent and its session; see [model.Sessions]. If the agent has no such session, or does not
// survive loading it, Open begins a new one, and Loaded returns false. Options.Timeout bounds Open too.
func (m *Model) Open(ctx context.Context, id string) (model.Session, error) {
	var s *session
	err := timed.Within(ctx, m.options.Name, m.options.Timeout, func(ctx context.Context) (err error) {
		s, err = m.open(ctx, id)
		return err
	})
	switch {
	case err == nil:
		return s, nil
	case s != nil: // the context ended during the opening
		s.end()
	}
	return nil, err
}

// open starts the agent and its session. The caller ends it.
func (m *Model) open(ctx context.Context, id string) (*session, error) {
	s, err := m.launch(ctx, id)
	var lost *loadError
	if errors.As(err, &lost) && ctx.Err() == nil {
		return m.launch(ctx, "")
	}
	return s, err
}

func (m *Model) launch(ctx context.Context, id string) (*session, error) {
	s, err := start(m.options)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, s.process.Stop)()
	if err := s.begin(id); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// session is a running agent with its session. Prompts are sequential.
type session struct {
	*connection
	options Options
	process *child.Process
	id      acp.SessionId
	loaded  bool

	turn      chan struct{} // holds one token while a prompt is in progress
	cancelled atomic.Bool   // requests for permission are answered with "cancelled"
	closed    atomic.Bool
	leaving   sync.Once
	running   sync.WaitGroup
}

// start starts the agent. The caller ends it.
func start(options Options) (*session, error) {
	process, err := child.Start(child.Options{Command: options.Command, Dir: options.Dir, Env: options.Env, Grace: options.Grace})
	if err != nil {
		return nil, fmt.Errorf("%w; install the program, or correct %s", err, options.Setting)
	}
	s := &session{options: options, process: process, turn: make(chan struct{}, 1)}
	s.connection = newConnection(process, process, func(m message) error { return s.take(m, nil) })
	s.running.Go(s.read)
	return s, nil
}

// read reads the agent's output to its end. Between two prompts only read notices that end, and it then ends
// the agent's remaining processes.
func (s *session) read() {
	s.listen()
	if !s.isCalling() {
		s.process.Stop()
	}
}

// Info says what the model is.
func (s *session) Info() model.Info { return infoOf(s.options) }

// ID is the agent's id of the session.
func (s *session) ID() string { return string(s.id) }

// Loaded reports whether the session is the requested one.
func (s *session) Loaded() bool { return s.loaded }

// Alive reports whether the session can be prompted: the agent runs, its output is read, and it has broken no
// rule.
func (s *session) Alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return s.process.Runs() && !s.closed.Load()
	}
}

// Stream prompts the agent with all of the body's text and yields its answer. It waits for the end of the
// previous prompt. A consumer that stops, or a context that ends, cancels the turn; if the agent obeys within
// the grace period, the session stays usable. Any other failure ends the session, unless the agent itself
// reported it.
func (s *session) Stream(caller context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return timed.Stream(caller, s.options.Name, s.options.Timeout, func(ctx context.Context, yield func(model.Delta) bool) (string, error) {
		request, err := prompt.Parse(body)
		if err != nil {
			return "", err
		}
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return s.answer(ctx, request.Text(), yield)
	})
}

// Close ends the agent and returns when all its processes are gone. It closes the agent's stdin and waits for
// the grace period, since the agent may still have to save the session; then it terminates, and finally kills
// the agent. It may be called at any time.
func (s *session) Close() {
	s.closed.Store(true)
	s.process.Close()
	s.end()
}

// end is Close without the first grace period.
func (s *session) end() {
	s.closed.Store(true)
	s.process.CloseInput()
	s.process.End()
	s.leaving.Do(func() { close(s.leave) })
	s.running.Wait()
}
