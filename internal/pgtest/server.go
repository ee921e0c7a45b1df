package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// Options configures a server. The zero value is the fastest.
type Options struct {
	// Durable makes commits wait for the disk, as in production. Default: commits do not wait, and full pages are not
	// written to the log.
	Durable bool
	// Settings are added to postgresql.conf and take precedence over those of this package.
	Settings map[string]string
	// ListenTCP makes the server listen on a free port of 127.0.0.1, which URL then contains. Default: a Unix socket
	// only.
	ListenTCP bool
	// Replication allows standbys. The server's commits are written before they are acknowledged, though not synced to
	// the disk unless Durable is set, too. Default: none.
	Replication bool
}

// Server is one cluster and its server process. Several tests may use it concurrently, except for methods that stop or
// restart it.
type Server struct {
	options  Options
	programs programs
	account  *account // nil: our own
	folder   string
	port     int
	name     string // the primary's name for it; "" for one that began as a primary

	primary   *Server // the server that it streamed from at first
	standbys  counter
	databases counter
	templates templates

	mu       sync.Mutex
	process  *postmaster // nil: not running
	unclean  bool        // killed, and not started since
	waitsFor []string    // the standbys that commits wait for
}

// Shutdown is a way to stop a server.
type Shutdown syscall.Signal

const (
	// Fast breaks off connections and transactions and writes a checkpoint.
	Fast = Shutdown(syscall.SIGINT)
	// Immediate writes nothing: the next start recovers from the log, as after a crash.
	Immediate = Shutdown(syscall.SIGQUIT)
)

// Start starts a new cluster and returns when it accepts connections. It ends with the test; if the test has failed,
// the last lines of the server's log are shown.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	server, err := start(options)
	check(t, err)
	server.endWith(t)
	return server
}

// URL returns the URL of a database of the server; it stays the same over restarts.
func (s *Server) URL(database string) string {
	if s.options.ListenTCP {
		return s.address(database, "127.0.0.1:"+strconv.Itoa(s.port), url.Values{})
	}
	return s.socketURL(database)
}

// Stop stops the server and returns when its last process has ended. Its data stays for Restart. Stop does nothing to a
// server that does not run.
func (s *Server) Stop(t testing.TB, how Shutdown) {
	t.Helper()
	check(t, s.stop(syscall.Signal(how)))
}

// Kill ends the server with SIGKILL, without any cleanup, and returns when its last process has ended: the processes
// that serve connections notice and end by themselves.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	check(t, s.stop(syscall.SIGKILL))
}

// Restart starts the server again, after a fast stop if it runs, and returns when it accepts connections.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.stop(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	check(t, s.launch())
}

func start(options Options) (*Server, error) {
	server, err := newServer(options)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(server.initialize(), server.writeSettings()); err != nil {
		return nil, errors.Join(err, server.end())
	}
	if err := server.launch(); err != nil {
		return nil, errors.Join(err, server.end())
	}
	return server, nil
}

// newServer finds all that a cluster needs and makes its folder, which is empty.
func newServer(options Options) (*Server, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	folder, err := makeFolder(account, options.Durable)
	if err != nil {
		return nil, err
	}
	port := socketPort
	if options.ListenTCP {
		if port, err = claimPort(folder); err != nil {
			return nil, errors.Join(err, os.RemoveAll(folder))
		}
	}
	return &Server{options: options, programs: programs, account: account, folder: folder, port: port}, nil
}

func (s *Server) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	process, err := s.startPostmaster()
	if err != nil {
		return err
	}
	s.process, s.unclean = process, false
	return nil
}

func (s *Server) stop(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	if err := s.process.end(signal); err != nil {
		return fmt.Errorf("stop the PostgreSQL server in %s: %w", s.folder, err)
	}
	s.process, s.unclean = nil, signal == syscall.SIGKILL
	return nil
}

func (s *Server) runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && !s.process.hasEnded()
}

func (s *Server) endWith(t testing.TB) {
	t.Cleanup(func() {
		s.showLog(t, 0)
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// end stops the server and removes all its files. What a killed one left in the system's shared memory is removed only
// when it starts and stops once more.
func (s *Server) end() error {
	if s.unclean {
		_ = s.launch() // the data may be damaged beyond repair, and is not needed
	}
	return errors.Join(s.stop(syscall.SIGQUIT), os.RemoveAll(s.folder))
}

// socketURL names the Unix socket, which every server has.
func (s *Server) socketURL(database string) string {
	return s.address(database, "", url.Values{"host": {s.folder}, "port": {strconv.Itoa(s.port)}})
}

func (s *Server) address(database, host string, parameters url.Values) string {
	parameters.Set("sslmode", "disable")
	at := url.URL{Scheme: "postgres", User: url.User(superuser), Host: host, Path: "/" + database, RawQuery: parameters.Encode()}
	return at.String()
}

func (s *Server) path(name string) string { return filepath.Join(s.folder, name) }

// check ends the test if there is an error: with a skip only if PostgreSQL is missing and not required.
func check(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errAbsent) && os.Getenv(requiredEnv) != "1":
		t.Skipf("SKIPPED: %v; %s=1 makes this a failure", err, requiredEnv)
	default:
		t.Fatal(err)
	}
}
