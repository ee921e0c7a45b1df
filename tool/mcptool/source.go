// Package mcptool makes the tools of an MCP server callable: a [Source] keeps one server running, over
// stdio or streamable HTTP, and offers its tools as tool.Tool, named <server>.<tool>.
//
// One goroutine (run) owns the server: it starts a [session], lists the tools, follows changes of the
// list, and starts the server again with growing waits when the session ends. Everybody else only reads
// the state that it leaves behind a mutex. A session is one life of the server and is never repaired:
// whatever is wrong ends it with a cause, and the next one begins from nothing.
//
// Pitfalls: the server is not trusted. All that it sends is bounded (message, list, description, schema,
// stderr), and every wait for it ends. A call whose server died may have been carried out, so that it is
// repeated only when the tool says that this does no harm. The SDK blocks in a write to a server that
// does not read, forgets a listening stream that broke, and keeps a session that a server has forgotten
// when the refusal has a JSON body; stdio.go and http.go mend that.
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
	done    chan struct{} // closed when the last goroutine is gone

	mu      sync.Mutex
	tools   tool.Set
	current *session // nil while the server is down
	err     error    // why it is down
	changed chan struct{}
}

var (
	errStarting = errors.New("it is still starting")
	errClosed   = errors.New("the program is closing it")
)

// Connect begins to keep a server running. It returns once the first start has succeeded or failed, or
// ctx is done. A server that does not start is no error: the source then has no tools, Err says why, and
// the start is tried again until Close. The error is about options that cannot work.
func Connect(ctx context.Context, options Options) (*Source, error) {
	options, err := options.checked()
	if err != nil {
		return nil, fmt.Errorf("connect to MCP server: %w", err)
	}
	s := &Source{options: options, done: make(chan struct{}), err: errStarting, changed: make(chan struct{})}
	s.ctx, s.close = context.WithCancelCause(context.Background())
	_, first := s.state()
	go s.run()
	select {
	case <-first:
	case <-ctx.Done():
	}
	return s, nil
}

// Name returns the server's name.
func (s *Source) Name() string { return s.options.Name }

// Tools returns the server's tools, sorted by name. After the server said that they have changed it
// waits for the new list, for a few seconds at most. While a server that once was up is down, they are
// those that it had: a call waits for the restart.
func (s *Source) Tools(ctx context.Context) tool.Set {
	if current, _ := s.state(); current != nil {
		current.settle(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// Err says why the server cannot be called at the moment, nil when it can.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the server, with its whole process group, and returns when the last goroutine is gone. It
// is idempotent. Calls in flight fail.
func (s *Source) Close() error {
	s.close(errClosed)
	<-s.done
	return nil
}

// run keeps the server running until Close.
func (s *Source) run() {
	defer close(s.done)
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

// live is one life of the server: how long it was up, and why it ended. A server that fails the
// handshake is asked with the older one the next time, and the other way round.
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

// follow reads the list of tools again whenever it changes, until the session ends. Between two reads
// it waits, so that a server cannot keep it busy.
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

// offer makes the tools that a session has listed the source's.
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

func (s *Source) reason() error {
	if err := s.Err(); err != nil {
		return err
	}
	return errors.New("its session ended")
}
