package mcptool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/internal/group"
)

// child is a server that runs as a child process in a process group of its own, and communicates over stdin
// and stdout.
type child struct {
	*session
	program *group.Program // nil before it is started
	lines   *lineConn
	said    stderrLog
	heard   chan struct{} // closed when stderr has been read to its end
	running sync.WaitGroup
}

// spawnError means that a program could not be started.
type spawnError struct{ err error }

func (e *spawnError) Error() string { return e.err.Error() }
func (e *spawnError) Unwrap() error { return e.err }

// Connect starts the process. It does not end with this process: a server whose stdin is closed can still
// clean up.
func (c *child) Connect(context.Context) (mcp.Connection, error) {
	program, err := group.Start(group.Options{Command: c.options.Command, Dir: c.options.Dir, Env: c.options.Env})
	if err != nil {
		return nil, &spawnError{err}
	}
	c.program = program
	c.lines = newLineConn(program.Out, program.In, c.session)
	c.said = stderrLog{logger: c.options.Logger, now: time.Now}
	c.heard = make(chan struct{})
	c.running.Go(c.wait)
	c.running.Go(func() {
		defer close(c.heard)
		c.said.read(program.Err)
	})
	return c.lines, nil
}

// wait records the end of the process. Its remaining output can still be read for a moment; a grandchild that
// holds its stdout open does not keep the session alive.
func (c *child) wait() {
	<-c.program.Exited()
	c.lines.drain(time.Second)
}

// explain waits a moment for the end of the process, because the exit status explains more than a broken
// pipe.
func (c *child) explain(err error) error {
	moment := time.NewTimer(time.Second)
	defer moment.Stop()
	if c.program == nil {
		return err
	}
	select {
	case <-c.program.Exited():
	case <-moment.C:
		if err == nil {
			err = errors.New("it closed its output")
		}
		return err
	}
	select {
	case <-c.heard:
	case <-moment.C:
	}
	what := "exit status 0"
	if status := c.program.Status(); status != nil {
		what = status.Error()
	}
	if last := c.said.lastLine(); last != "" && c.client == nil {
		return fmt.Errorf("the process ended (%s); its last words were %q", what, last)
	}
	return fmt.Errorf("the process ended (%s)", what)
}

// changeArrived admits the next notification of a changed list.
func (c *child) changeArrived() { c.lines.changeArrived() }

// deaf returns false: a process's notifications arrive or the session ends.
func (c *child) deaf() bool { return false }

// shut ends the process and its whole group: it closes stdin, then sends SIGTERM, and then kills the group.
func (c *child) shut() {
	if c.program == nil {
		return
	}
	c.lines.closeInput()
	c.waitExit(c.options.Grace)
	c.program.End(c.options.Grace)
	_ = c.lines.Close()
	_ = c.program.Err.Close() // a process that left the group may hold the other end
	if !c.waitExit(c.options.Grace) {
		c.options.Logger.Error("the MCP server's process cannot be ended; it is left alone", "pid", c.program.PID())
		return // it has other privileges than this program, or hangs in the kernel
	}
	c.running.Wait()
}

// waitExit waits for the end of the process, and reports whether it has ended.
func (c *child) waitExit(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.program.Exited():
		return true
	case <-timer.C:
		return false
	}
}

// stderrLog logs the lines of a child's stderr, bounded in length and in rate.
type stderrLog struct {
	logger logger
	now    func() time.Time

	mu   sync.Mutex
	last string

	second time.Time // when the current second of the rate began
	passed int       // lines logged in it
	left   int       // lines dropped since
}

// logger is the part of a slog.Logger that stderrLog uses.
type logger interface {
	Debug(message string, args ...any)
}

const (
	maxStderrLine  = 1 << 10 // bytes
	maxStderrLines = 50      // per second
)

// read reads until the end, without pauses, so that the child never waits for it.
func (l *stderrLog) read(from *os.File) {
	buffer := make([]byte, 32<<10)
	var line []byte
	for {
		n, err := from.Read(buffer)
		for _, b := range buffer[:n] {
			switch {
			case b == '\n':
				l.pass(line)
				line = line[:0]
			case len(line) < maxStderrLine:
				line = append(line, b)
			}
		}
		if err != nil {
			l.pass(line)
			return
		}
	}
}

func (l *stderrLog) pass(line []byte) {
	text := strings.TrimSpace(strings.ToValidUTF8(string(line), "\uFFFD"))
	if text == "" {
		return
	}
	l.mu.Lock()
	l.last = text
	l.mu.Unlock()
	if now := l.now(); now.Sub(l.second) >= time.Second {
		if l.left > 0 {
			l.logger.Debug("lines of the MCP server's stderr were left out", "lines", l.left)
		}
		l.second, l.passed, l.left = now, 0, 0
	}
	if l.passed++; l.passed > maxStderrLines {
		l.left++
		return
	}
	l.logger.Debug("stderr of the MCP server", "line", text)
}

func (l *stderrLog) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
