package child

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Options configures the program to start.
type Options struct {
	Command []string // the program and its arguments
	Dir     string   // the working directory. Default: that of this process
	// Env is NAME=value, besides PATH, HOME, LANG and TMPDIR, which are this process's own. Of a duplicate name the
	// last value counts. No error repeats a value from here.
	Env []string
	// Grace is how long the process group may take to exit after it is asked to, before it is killed. Default
	// 2 s.
	Grace time.Duration
	// Free lets the program outlive this process, so that it can clean up when its pipes break. Default: the kernel
	// kills the program itself when this process ends in any way; on Linux only.
	Free bool
	// Stderr receives each line of stderr, without its end and truncated to 1 KiB; the line is valid until it returns.
	// Default: none.
	Stderr func(line []byte)
}

// Process is a started program. Read is for one goroutine; the other methods are safe for concurrent use.
type Process struct {
	name    string
	grace   time.Duration
	program *program
	out     *output // its stdout
	errs    *output // its stderr
	stderr  tail

	stop    chan struct{} // closed by Stop
	gone    chan struct{} // closed when the group has ended, or cannot be ended
	stuck   bool          // the group cannot be ended; read it after gone
	once    sync.Once
	running sync.WaitGroup
}

// Start starts a program. The caller must call End or Close.
func Start(options Options) (*Process, error) {
	program, err := launch(options)
	if err != nil {
		return nil, err
	}
	p := &Process{
		name: options.Command[0], grace: cmp.Or(options.Grace, 2*time.Second), program: program,
		out: &output{File: program.out}, errs: &output{File: program.err}, stderr: tail{line: options.Stderr},
		stop: make(chan struct{}), gone: make(chan struct{}),
	}
	p.stderr.hide(options.Env)
	p.running.Go(p.watch)
	p.running.Go(func() { p.stderr.read(p.errs) })
	return p, nil
}

// killTime is how long the system may take to end processes that were killed, at least: a short grace period is no
// reason to give up on them, for a busy system takes a while.
const killTime = 2 * time.Second

// watch ends the group when the program has exited or Stop was called, and unblocks readers and writers.
func (p *Process) watch() {
	defer close(p.gone)
	select {
	case <-p.program.exited:
	case <-p.stop:
	}
	p.program.end(p.grace)
	limit := time.NewTimer(max(p.grace, killTime))
	defer limit.Stop()
	select {
	case <-p.program.exited:
	case <-limit.C:
		p.stuck = true // it has other privileges than this process, or hangs in the kernel
	}
	past := time.Unix(1, 0)
	for _, file := range p.program.files() {
		if file.SetDeadline(past) != nil { // for files without deadlines
			_ = file.Close()
		}
	}
}

// Read reads the program's stdout. It returns io.EOF when the program has closed it, or when the group has
// ended and its remaining output is read.
func (p *Process) Read(buffer []byte) (int, error) { return p.out.Read(buffer) }

// Write writes to the program's stdin. The write is aborted when the program ends.
func (p *Process) Write(data []byte) (int, error) { return p.program.in.Write(data) }

// WriteWithin is Write until ctx ends. A write that ctx interrupts may have written a part, n bytes.
func (p *Process) WriteWithin(ctx context.Context, data []byte) (n int, err error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	p.setWriteDeadline(time.Time{})
	broken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(broken)
		p.setWriteDeadline(time.Unix(1, 0))
	})
	n, err = p.Write(data)
	if !stop() {
		<-broken
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return n, err
}

// LimitWrites bounds the duration of writes from now on, including those in progress. 0 removes the bound.
func (p *Process) LimitWrites(limit time.Duration) {
	if limit == 0 {
		p.setWriteDeadline(time.Time{})
		return
	}
	p.setWriteDeadline(time.Now().Add(limit))
}

func (p *Process) setWriteDeadline(deadline time.Time) {
	_ = p.program.in.SetWriteDeadline(deadline) // without deadlines, the end of the program bounds writes
}

// CloseInput closes the program's stdin.
func (p *Process) CloseInput() { _ = p.program.in.Close() }

// Disconnect closes the program's stdin and stdout. Reads and writes in progress are aborted.
func (p *Process) Disconnect() {
	p.CloseInput()
	_ = p.out.Close()
}

// Stop starts to end the group, and does not wait for it.
func (p *Process) Stop() { p.once.Do(func() { close(p.stop) }) }

// Runs reports whether the program is still running and Stop was not called.
func (p *Process) Runs() bool {
	select {
	case <-p.program.exited:
	case <-p.stop:
	default:
		return true
	}
	return false
}

// Exited is closed when the program itself has ended; other members of its group may still run.
func (p *Process) Exited() <-chan struct{} { return p.program.exited }

// Status is the error that the program ended with, nil for success. Call it after Exited.
func (p *Process) Status() error { return p.program.status }

// Ended is closed when the program and its group are gone.
func (p *Process) Ended() <-chan struct{} { return p.gone }

// End ends the group and returns when it is gone. It may be called twice.
func (p *Process) End() {
	p.Stop()
	<-p.gone
	p.running.Wait() // the rest of stderr is still read
	for _, file := range p.program.files() {
		_ = file.Close() // no pending write matters any more
	}
}

// Close closes the program's stdin, so that it can save what it has to, and ends the group after the grace period.
func (p *Process) Close() {
	p.CloseInput()
	patience := time.NewTimer(p.grace)
	defer patience.Stop()
	select {
	case <-p.gone:
	case <-patience.C:
	}
	p.End()
}

// Failure returns how an ended program failed, nil when it succeeded. Call it after End.
func (p *Process) Failure() error {
	switch {
	case p.stuck:
		return fmt.Errorf("%q cannot be ended and was left alone (process %d)%s", p.name, p.program.pid(), p.stderr.quoted())
	case p.program.status != nil:
		return fmt.Errorf("%q ended with %w%s", p.name, p.program.status, p.stderr.quoted())
	}
	return nil
}

// Stuck reports whether the group of an ended program cannot be ended.
func (p *Process) Stuck() bool { return p.stuck }

// LastLine returns the last line of the program's stderr.
func (p *Process) LastLine() string { return p.stderr.lastLine() }

// Stderr returns the end of the program's stderr, after introductory text, "" when stderr was empty.
func (p *Process) Stderr() string { return p.stderr.quoted() }
