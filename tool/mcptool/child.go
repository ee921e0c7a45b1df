package mcptool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// child is a server that runs as a process of its own group and speaks over stdin and stdout.
type child struct {
	*session
	command *exec.Cmd
	lines   *lineConn
	stderr  *os.File
	said    stderrLog
	heard   chan struct{} // closed when stderr has been read to its end
	exited  chan struct{} // closed when the process has ended
	status  error         // why; read it after exited
	running sync.WaitGroup
}

// spawnError is a program that could not be started.
type spawnError struct{ err error }

func (e *spawnError) Error() string { return e.err.Error() }
func (e *spawnError) Unwrap() error { return e.err }

// Connect starts the process.
func (c *child) Connect(context.Context) (mcp.Connection, error) {
	if err := c.spawn(); err != nil {
		return nil, &spawnError{err}
	}
	c.running.Go(c.wait)
	c.running.Go(func() {
		defer close(c.heard)
		c.said.read(c.stderr)
	})
	return c.lines, nil
}

// spawn starts the process with three pipes. They are made here rather than by os/exec because reads
// and writes of these files can be broken off.
func (c *child) spawn() error {
	c.command = exec.Command(c.options.Command[0], c.options.Command[1:]...) //nolint:gosec // the settings name it
	c.command.Dir = c.options.Dir
	c.command.Env = childEnv(c.options.Env)
	ownGroup(c.command)
	var pipes [3][2]*os.File
	for i := range pipes {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(pipes)
			return fmt.Errorf("make pipes: %w", err)
		}
		pipes[i] = [2]*os.File{read, write}
	}
	in, out, errs := pipes[0], pipes[1], pipes[2]
	c.command.Stdin, c.command.Stdout, c.command.Stderr = in[0], out[1], errs[1]
	if err := c.command.Start(); err != nil {
		closeAll(pipes)
		return fmt.Errorf("start %s: %w", c.options.Command[0], startReason(err))
	}
	for _, theirs := range []*os.File{in[0], out[1], errs[1]} {
		_ = theirs.Close() // the child has its own
	}
	c.lines = newLineConn(out[0], in[1], c.session)
	c.stderr = errs[0]
	c.said = stderrLog{logger: c.options.Logger, now: time.Now}
	c.exited, c.heard = make(chan struct{}), make(chan struct{})
	return nil
}

func closeAll(pipes [3][2]*os.File) {
	for _, pipe := range pipes {
		for _, end := range pipe {
			if end != nil {
				_ = end.Close()
			}
		}
	}
}

// startReason takes the path out of an error that names it already.
func startReason(err error) error {
	var inPath *os.PathError
	var lookup *exec.Error
	switch {
	case errors.As(err, &lookup):
		return lookup.Err
	case errors.As(err, &inPath):
		return inPath
	}
	return err
}

// inherited names the variables that a child gets of this process's environment. Windows cannot start
// programs without the second group.
func inherited() []string {
	names := []string{"PATH", "HOME", "LANG", "TMPDIR"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT", "PATHEXT", "COMSPEC", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
	}
	return names
}

// childEnv is the whole environment of a child; of a name that is there twice the last value counts.
func childEnv(own []string) []string {
	env := []string{}
	for _, name := range inherited() {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, own...)
}

// wait notes the end of the process. What it wrote before can still be read for a moment; a grandchild
// that holds its stdout open does not keep the session alive.
func (c *child) wait() {
	c.status = c.command.Wait()
	close(c.exited)
	c.lines.drain(time.Second)
}

// explain waits a moment for the process to end too, because its end says more than a broken pipe.
func (c *child) explain(err error) error {
	moment := time.NewTimer(time.Second)
	defer moment.Stop()
	if c.exited == nil {
		return err
	}
	select {
	case <-c.exited:
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
	if c.status != nil {
		what = c.status.Error()
	}
	if last := c.said.lastLine(); last != "" && c.client == nil {
		return fmt.Errorf("the process ended (%s); its last words were %q", what, last)
	}
	return fmt.Errorf("the process ended (%s)", what)
}

// changeArrived lets the next change of the list through.
func (c *child) changeArrived() { c.lines.changeArrived() }

// deaf is never so: what a process says arrives or ends the session.
func (c *child) deaf() bool { return false }

// shut ends the process and its whole group: first it is asked by the end of its input, then by
// SIGTERM, and then it is killed.
func (c *child) shut() {
	if c.lines == nil {
		return
	}
	c.lines.closeInput()
	c.waitExit(c.options.Grace)
	endGroup(c.command.Process, c.options.Grace)
	_ = c.lines.Close()
	_ = c.stderr.Close() // somebody who left the group may hold the other end
	if !c.waitExit(c.options.Grace) {
		c.options.Logger.Error("the MCP server's process cannot be ended; it is left alone", "pid", c.command.Process.Pid)
		return // it has other rights than this program, or hangs in the system
	}
	c.running.Wait()
}

// waitExit waits for the process to end, and says whether it has.
func (c *child) waitExit(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}

// stderrLog passes the lines of a child's stderr on, bounded in length and in rate.
type stderrLog struct {
	logger logger
	now    func() time.Time

	mu   sync.Mutex
	last string

	second time.Time // when the current second of the rate began
	passed int       // lines passed on in it
	left   int       // lines left out since
}

// logger is what stderrLog needs of a slog.Logger.
type logger interface {
	Debug(message string, args ...any)
}

const (
	maxStderrLine  = 1 << 10 // bytes
	maxStderrLines = 50      // per second
)

// read reads until the end. It always reads on, so that the child never waits for it.
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
