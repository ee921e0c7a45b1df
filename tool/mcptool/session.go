package mcptool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is one life of a server: from a start to whatever ends it.
type session struct {
	options Options
	ctx     context.Context // ends when the session does; its cause says why
	fail    context.CancelCauseFunc
	client  *mcp.ClientSession
	wire    wire
	ends    sync.WaitGroup
	ended   sync.Once

	tools   []listedTool // belongs to Source.run
	changes chan struct{}

	mu    sync.Mutex
	fresh chan struct{} // closed when a changed list has been read; nil while none is awaited
}

// wire is a transport that a session owns: a child process or HTTP.
type wire interface {
	mcp.Transport
	// deaf reports whether the server can no longer tell of changes.
	deaf() bool
	// changeArrived says that the SDK has dealt with a change of the list.
	changeArrived()
	// explain says in plain words why a connection broke; it may wait a moment to find out.
	explain(err error) error
	// shut ends everything that belongs to the transport and returns when its goroutines are gone.
	shut()
}

// handshakeError is a server that was reached but did not agree to a session.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// legacyProtocol is the newest version of MCP that begins with initialize.
const legacyProtocol = "2025-11-25"

// start starts a server and lists its tools.
func start(parent context.Context, options Options, legacy bool) (*session, error) {
	s := &session{options: options, changes: make(chan struct{}, 1)}
	s.ctx, s.fail = context.WithCancelCause(parent)
	if len(options.Command) > 0 {
		s.wire = &child{session: s}
	} else {
		s.wire = newHTTP(s)
	}
	err := s.connect(legacy)
	if err == nil {
		err = s.list()
	}
	if err != nil {
		s.fail(err)
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *session) connect(legacy bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.options.StartTimeout)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "continuo", Version: s.options.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			s.wire.changeArrived()
			s.listChanged()
		},
	})
	options := &mcp.ClientSessionOptions{}
	if legacy {
		options.ProtocolVersion = legacyProtocol
	}
	connected, err := client.Connect(ctx, s.wire, options)
	var spawn *spawnError
	switch {
	case errors.As(err, &spawn):
		return spawn
	case err != nil && ctx.Err() != nil && s.ctx.Err() == nil:
		return &handshakeError{fmt.Errorf("it did not answer within %v", s.options.StartTimeout)}
	case err != nil && notDialled(err):
		return plain(err)
	case err != nil:
		return &handshakeError{s.why(err)}
	}
	s.client = connected
	s.ends.Go(func() {
		err := connected.Wait()
		if s.ctx.Err() == nil {
			s.fail(s.wire.explain(err))
		}
	})
	return nil
}

// why prefers the session's own cause to what the SDK made of it.
func (s *session) why(err error) error {
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	return s.wire.explain(err)
}

// end ends the session and all that belongs to it.
func (s *session) end() {
	s.ended.Do(func() {
		s.fail(errClosed)
		s.wire.shut()
		if s.client != nil {
			_ = s.client.Close() // the transport is shut already
		}
		s.ends.Wait()
		s.settled()
	})
}

// listChanged notes that the list of tools has to be read again. It never blocks.
func (s *session) listChanged() {
	s.settling()
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// settling begins a time in which Tools waits for a new list.
func (s *session) settling() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh == nil {
		s.fresh = make(chan struct{})
	}
}

func (s *session) settled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh != nil && (len(s.changes) == 0 || s.ctx.Err() != nil) {
		close(s.fresh)
		s.fresh = nil
	}
}

// settle waits for a list that is being read again.
func (s *session) settle(ctx context.Context) {
	if s.wire.deaf() {
		select {
		case s.changes <- struct{}{}: // the source's pause keeps this from being often
		default:
		}
	}
	s.mu.Lock()
	fresh := s.fresh
	s.mu.Unlock()
	if fresh == nil {
		return
	}
	limit := time.NewTimer(5 * time.Second)
	defer limit.Stop()
	select {
	case <-fresh:
	case <-ctx.Done():
	case <-limit.C:
	case <-s.ctx.Done():
	}
}
