package mcptool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is one session of a server: from its start to its end for any reason.
type session struct {
	options Options
	ctx     context.Context // ends when the session does; its cause says why
	fail    context.CancelCauseFunc
	client  *mcp.ClientSession
	wire    wire
	ends    sync.WaitGroup
	ended   sync.Once

	tools   []listedTool // owned by Source.run
	changes chan struct{}

	mu    sync.Mutex
	fresh chan struct{} // closed when a changed list was read; nil while none is awaited
}

// wire is a transport that a session owns: a child process or HTTP.
type wire interface {
	mcp.Transport
	// deaf reports whether notifications of changes can no longer arrive.
	deaf() bool
	// changeArrived reports that the SDK has handled a change of the list.
	changeArrived()
	// explain returns the cause of a broken connection in plain words; it may wait a moment for it.
	explain(err error) error
	// shut ends everything that belongs to the transport and returns when its goroutines are gone.
	shut()
}

// handshakeError means that a server was reached but refused a session.
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
		s.wire = &program{session: s}
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

// why returns the session's own cause if there is one, rather than the SDK's error.
func (s *session) why(err error) error {
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	return s.wire.explain(err)
}

// end ends the session and everything that belongs to it.
func (s *session) end() {
	s.ended.Do(func() {
		s.fail(errClosed)
		s.wire.shut()
		if s.client != nil {
			_ = s.client.Close() // the transport is already shut
		}
		s.ends.Wait()
		s.settled()
	})
}

// listChanged records that the list of tools has to be read again. It never blocks.
func (s *session) listChanged() {
	s.settling()
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// settling begins a period in which Tools waits for a new list.
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
		case s.changes <- struct{}{}: // the source's pause bounds how often
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
