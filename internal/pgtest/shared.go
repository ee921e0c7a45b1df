package pgtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the one server of the test binary. It is a package variable because nothing else outlives the tests that
// use it, and TestMain cannot pass them anything.
var shared sharedServer

// sharedServer is a server that its first user starts.
type sharedServer struct {
	mu     sync.Mutex
	inMain bool // Main runs and will end it
	begun  bool
	server *Server
	err    error
}

// Main runs the tests, then ends the server that they shared, if any, and returns the code to exit with:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m interface{ Run() int }) int { return shared.main(m) }

// Shared returns the one server of the test binary, which the first call starts; [Main] ends it. It does not listen on
// TCP, and is not durable. Tests take databases from it and never stop it.
func Shared(t testing.TB) *Server {
	t.Helper()
	server, err := shared.get()
	check(t, err)
	before := server.logSize()
	t.Cleanup(func() { server.showLog(t, before) })
	return server
}

func (s *sharedServer) main(m interface{ Run() int }) (code int) {
	s.mu.Lock()
	s.inMain = true
	s.mu.Unlock()
	defer func() {
		if err := s.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}()
	return m.Run()
}

func (s *sharedServer) get() (*Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.inMain {
		return nil, errors.New("the shared PostgreSQL server would not be stopped: write func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }")
	}
	if !s.begun {
		s.begun = true
		s.server, s.err = start(Options{})
	}
	return s.server, s.err
}

func (s *sharedServer) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inMain, s.begun = false, false
	if s.server == nil {
		return nil
	}
	server := s.server
	s.server = nil
	return server.end()
}
