// Package mcptool makes the tools of an MCP server callable: a [Source] keeps one server running, over stdio
// or streamable HTTP, and offers its tools as tool.Tool, named <server>.<tool>.
//
// One goroutine (run) owns the server: it starts a [session], lists the tools, follows changes of the list,
// and restarts the server with growing waits when the session ends. All other goroutines only read its state
// under a mutex. A session is one life of the server and is never repaired: any fault ends it with a cause,
// and the next one starts from scratch.
//
// Pitfalls: the server is not trusted. All that it sends is bounded (message, list, description, schema,
// stderr), and every wait for it ends. A call whose server died may have been executed, so it is repeated
// only if the tool is idempotent. The SDK blocks in a write to a server that does not read, does not reopen a
// broken notification stream, and keeps a session that the server has lost if the refusal has a JSON body;
// stdio.go and http.go work around that.
package mcptool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/continuo-log/continuo/tool"
)

// Source is one MCP server and its tools. It is safe for concurrent use.
type Source struct {
	options Options
	ctx     context.Context // ends with Close
	close   context.CancelCauseFunc
	running sync.WaitGroup // run, which ends last

	mu      sync.Mutex
	tools   tool.Set
	current *session // nil while the server is down
	err     error    // the reason for which the server is down
	changed chan struct{}
}

var (
	errStarting = errors.New("it is still starting")
	errClosed   = errors.New("the program is closing it")
)

// Connect starts a server and keeps it running. It returns once the first start has succeeded or failed, or
// ctx is done. A server that does not start is not an error: the source then has no tools, Err returns the
// reason, and the start is retried until Close. An error is returned only for invalid options.
func Connect(ctx context.Context, options Options) (*Source, error) {
	options, err := options.checked()
	if err != nil {
		return nil, fmt.Errorf("connect to MCP server: %w", err)
	}
	s := &Source{options: options, err: errStarting, changed: make(chan struct{})}
	s.ctx, s.close = context.WithCancelCause(context.Background())
	_, first := s.state()
	s.running.Go(s.run)
	select {
	case <-first:
	case <-ctx.Done():
	}
	return s, nil
}

// Name returns the server's name.
func (s *Source) Name() string { return s.options.Name }

// Tools returns the server's tools, sorted by name. After a notification of changes it waits for the new
// list, for a few seconds at most. While a server that was up before is down, it returns the last list: a
// call waits for the restart.
func (s *Source) Tools(ctx context.Context) tool.Set {
	if current, _ := s.state(); current != nil {
		current.settle(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// Err returns the reason for which the server cannot be called at the moment, nil when it can.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the server with its whole process group, and returns when the last goroutine has ended. It is
// idempotent. Calls in flight fail.
func (s *Source) Close() error {
	s.close(errClosed)
	s.running.Wait()
	return nil
}

// run keeps the server running until Close.
func (s *Source) run() {
	o := s.options
	waits := backoff{first: o.RestartWait, most: o.RestartMaxWait, well: o.RestartWell}
	legacy := false
	for s.ctx.Err() == nil {
		up, err := s.live(&legacy)
		if s.ctx.Err() != nil {
			break
		}
		wait := waits.wait(up)
		o.Logger.Warn("the MCP server is down", "error", err, "was_up", up.Round(time.Millisecond), "retry_in", wait)
		select {
		case <-o.After(wait):
		case <-s.ctx.Done():
		}
	}
	s.set(nil, errClosed)
}

// live runs one session of the server; it returns how long the server was up, and why the session ended.
// After a failed handshake, the next one uses the other protocol version.
func (s *Source) live(legacy *bool) (up time.Duration, err error) {
	life, err := start(s.ctx, s.options, *legacy)
	if err != nil {
		var shake *handshakeError
		if errors.As(err, &shake) {
			*legacy = !*legacy
		}
		err = fmt.Errorf("it did not start: %w", err)
		s.set(nil, err)
		return 0, err
	}
	defer life.end()
	began := s.options.Now()
	s.offer(life)
	s.set(life, nil)
	s.options.Logger.Info("the MCP server is up", "tools", len(life.tools))
	s.follow(life)
	err = context.Cause(life.ctx)
	s.set(nil, err)
	return s.options.Now().Sub(began), err
}

// follow reads the list of tools again whenever it changes, until the session ends. It pauses between two
// reads, so that a server cannot keep it busy.
func (s *Source) follow(life *session) {
	var last time.Time
	for {
		pause := time.Second
		if life.wire.deaf() {
			pause = 30 * time.Second
		}
		select {
		case <-life.changes:
		case <-life.ctx.Done():
			return
		}
		if since := time.Since(last); since < pause {
			select {
			case <-time.After(pause - since):
			case <-life.ctx.Done():
				return
			}
		}
		last = time.Now()
		life.settling()
		if err := life.list(); err != nil {
			s.options.Logger.Warn("the MCP server's tools could not be listed again", "error", err)
		} else {
			s.offer(life)
			s.options.Logger.Info("the MCP server's tools have changed", "tools", len(life.tools))
		}
		life.settled()
	}
}

// offer sets the source's tools to those that a session has listed.
func (s *Source) offer(life *session) {
	tools := make(tool.Set, len(life.tools))
	for i, listed := range life.tools {
		tools[i] = remote{source: s, listed: listed}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
}

func (s *Source) set(current *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.err = current, err
	close(s.changed)
	s.changed = make(chan struct{})
}

// state returns the session, nil while the server is down, and a channel that closes when that changes.
func (s *Source) state() (*session, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.changed
}

// session waits for a session that is alive.
func (s *Source) session(ctx context.Context) (*session, error) {
	limit := time.NewTimer(s.options.CallWait)
	defer limit.Stop()
	for {
		current, changed := s.state()
		if current != nil && current.ctx.Err() == nil {
			return current, nil
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return nil, errClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; the wait for it was broken off", s.reason())
		case <-limit.C:
			return nil, fmt.Errorf("%w; it was waited for %v", s.reason(), s.options.CallWait)
		}
	}
}

// reason returns why there is no session: also where the session has ended and run has not noticed it.
func (s *Source) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.current != nil && context.Cause(s.current.ctx) != nil:
		return context.Cause(s.current.ctx)
	}
	return errors.New("its session ended")
}
