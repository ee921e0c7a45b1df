package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startTimeout bounds a start, recovery included, and a stop.
const startTimeout = 5 * time.Minute

// postmaster is a server's first process, our child; the others are its children.
type postmaster struct {
	process *os.Process
	gone    chan struct{} // closed when the last of these processes has ended
	err     error         // how it ended; set before gone is closed
}

// startPostmaster starts the server's processes and returns when they accept connections.
func (s *Server) startPostmaster() (*postmaster, error) {
	log, err := os.OpenFile(s.path(logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of the PostgreSQL server: %w", err)
	}
	defer log.Close() //nolint:errcheck // the server has its own
	cmd := exec.Command(s.programs.path("postgres"), "-D", s.path(dataName), "-c", "config_file="+s.path(settingsName))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.folder, environment(), log, log
	cmd.SysProcAttr = attributes(s.account, syscall.SIGQUIT)
	p, err := fork(cmd)
	if err != nil {
		return nil, fmt.Errorf("start a PostgreSQL server: %w", err)
	}
	if err := s.awaitStart(p); err != nil {
		return nil, errors.Join(fmt.Errorf("start a PostgreSQL server: %w; its log ends with:\n%s", err, s.logFrom(0)), p.end(syscall.SIGQUIT))
	}
	return p, nil
}

// fork starts the child on a thread that lives as long as it, and watches the end of the child and of its children: all
// of them inherit one end of a pipe, to which nothing is written.
func fork(cmd *exec.Cmd) (*postmaster, error) {
	alive, inherited, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{inherited}
	p := &postmaster{gone: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.gone)
		defer alive.Close()    //nolint:errcheck // nothing was written
		runtime.LockOSThread() // permanently: the thread ends with the goroutine
		err := cmd.Start()
		inherited.Close() //nolint:errcheck // nothing was written
		p.process = cmd.Process
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			_, _ = io.Copy(io.Discard, alive)
		}
	}()
	if err := <-started; err != nil {
		<-p.gone
		return nil, err
	}
	return p, nil
}

// end sends a signal and waits until all processes have ended.
func (p *postmaster) end(signal syscall.Signal) error {
	if err := p.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case <-p.gone:
		return nil
	case <-timeout.C:
		_ = p.process.Kill()
		return fmt.Errorf("processes of it are still there %s after the signal %q", startTimeout, signal)
	}
}

func (p *postmaster) hasEnded() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// awaitStart waits until the server's lock file says that it accepts connections.
func (s *Server) awaitStart(p *postmaster) error {
	return await(startTimeout, "the server accepts connections", func(context.Context) (bool, error) {
		if p.hasEnded() {
			return false, fmt.Errorf("it has ended (%w)", p.err)
		}
		return s.ready(p.process.Pid), nil
	})
}

// The lines of postmaster.pid that are used here, from 0.
const (
	pidLine    = 0
	statusLine = 7
)

// ready reports whether the process of a pid has recorded in the lock file that it is ready.
func (s *Server) ready(pid int) bool {
	text, err := os.ReadFile(s.path(dataName + "/postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) > statusLine && lines[pidLine] == strconv.Itoa(pid) && strings.TrimSpace(lines[statusLine]) == "ready"
}

// await polls a condition until it is true. The condition gets a context with the deadline.
func await(timeout time.Duration, what string, condition func(context.Context) (bool, error)) error {
	const pause = 2 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		yes, err := condition(ctx)
		if ctx.Err() == nil && (yes || err != nil) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("waited %s in vain until %s", timeout, what)
		}
	}
}
