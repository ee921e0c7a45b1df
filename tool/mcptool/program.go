package mcptool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/internal/child"
)

// program is a server that runs as a child process and communicates over stdin and stdout.
type program struct {
	*session
	process *child.Process // nil before it is started
	lines   *lineConn
}

// spawnError means that a program could not be started.
type spawnError struct{ err error }

func (e *spawnError) Error() string { return e.err.Error() }
func (e *spawnError) Unwrap() error { return e.err }

// Connect starts the process. It does not end with this process: a server whose stdin is closed can still
// clean up.
func (p *program) Connect(context.Context) (mcp.Connection, error) {
	stderr := stderrLog{logger: p.options.Logger, now: time.Now}
	process, err := child.Start(child.Options{
		Command: p.options.Command, Dir: p.options.Dir, Env: p.options.Env, Grace: p.options.Grace, Free: true, Stderr: stderr.pass,
	})
	if err != nil {
		return nil, &spawnError{err}
	}
	p.process, p.lines = process, newLineConn(process, p.session)
	return p.lines, nil
}

// explain waits a moment for the end of the process, because the exit status explains more than a broken
// pipe.
func (p *program) explain(err error) error {
	if p.process == nil {
		return err
	}
	moment := time.NewTimer(time.Second)
	defer moment.Stop()
	select {
	case <-p.process.Exited():
	case <-moment.C:
		if err == nil {
			err = errors.New("it closed its output")
		}
		return err
	}
	p.process.End() // the rest of stderr is read then
	what := "exit status 0"
	if status := p.process.Status(); status != nil {
		what = status.Error()
	}
	if last := p.process.LastLine(); last != "" && p.client == nil {
		return fmt.Errorf("the process ended (%s); its last words were %q", what, last)
	}
	return fmt.Errorf("the process ended (%s)", what)
}

// changeArrived admits the next notification of a changed list.
func (p *program) changeArrived() { p.lines.changeArrived() }

// deaf returns false: a process's notifications arrive or the session ends.
func (p *program) deaf() bool { return false }

// shut ends the process and its whole group: it closes stdin, then sends SIGTERM, and then kills the group.
func (p *program) shut() {
	if p.process == nil {
		return
	}
	p.process.Close()
	if p.process.Stuck() {
		p.options.Logger.Error("the MCP server's process cannot be ended; it is left alone", "reason", p.process.Failure())
	}
}

// stderrLog logs the lines of a process's stderr, bounded in rate. It is for one goroutine.
type stderrLog struct {
	logger logger
	now    func() time.Time

	second time.Time // when the current second of the rate began
	passed int       // lines logged in it
	left   int       // lines dropped since
}

// logger is the part of a slog.Logger that stderrLog uses.
type logger interface {
	Debug(message string, args ...any)
}

const maxStderrLines = 50 // per second

func (l *stderrLog) pass(line []byte) {
	text := strings.TrimSpace(strings.ToValidUTF8(string(line), "\uFFFD"))
	if text == "" {
		return
	}
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
