package child

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/continuo-log/continuo/internal/group"
)

// Options configures the program to start.
type Options struct {
	Command []string // the program and its arguments
	Dir     string   // the working directory. Default: that of this process
	// Env is NAME=value, besides PATH, HOME, LANG and TMPDIR of this process.
	Env []string
	// Grace is how long the process group may take to exit after it is asked to, before it is killed. Default
	// 2 s.
	Grace time.Duration
}

// Process is a started program. Read is for one goroutine; the other methods are safe for concurrent use.
type Process struct {
	name    string
	grace   time.Duration
	program *group.Program
	out     *output // its stdout
	errs    *output // its stderr
	said    tail

	stop    chan struct{} // closed by Stop
	gone    chan struct{} // closed when the group has ended, or cannot be ended
	stuck   bool          // the group cannot be ended; read it after gone
	once    sync.Once
	running sync.WaitGroup
}

// Start starts a program. The caller must call End.
func Start(options Options) (*Process, error) {
	program, err := group.Start(group.Options{Command: options.Command, Dir: options.Dir, Env: options.Env, Bound: true})
	if err != nil {
		return nil, err
	}
	p := &Process{
		name: options.Command[0], grace: cmp.Or(options.Grace, 2*time.Second), program: program,
		out: &output{File: program.Out}, errs: &output{File: program.Err},
		stop: make(chan struct{}), gone: make(chan struct{}),
	}
	p.said.hide(options.Env)
	p.running.Go(p.watch)
	p.running.Go(func() { p.said.read(p.errs) })
	return p, nil
}

// watch ends the group when the program has exited or Stop was called, and unblocks readers and writers.
func (p *Process) watch() {
	defer close(p.gone)
	select {
	case <-p.program.Exited():
	case <-p.stop:
	}
	p.program.End(p.grace)
	limit := time.NewTimer(p.grace)
	defer limit.Stop()
	select {
	case <-p.program.Exited():
	case <-limit.C:
		p.stuck = true // it has other privileges than this process, or hangs in the kernel
	}
	past := time.Unix(1, 0)
	for _, file := range p.files() {
		if file.SetDeadline(past) != nil { // for files without deadlines
			_ = file.Close()
		}
	}
}

func (p *Process) files() []*os.File { return []*os.File{p.program.In, p.program.Out, p.program.Err} }

// Read reads the program's stdout. It returns io.EOF when the program has closed it, or when the group has
// ended and its remaining output is read.
func (p *Process) Read(buffer []byte) (int, error) { return p.out.Read(buffer) }

// Write writes to the program's stdin. The write is aborted when the program ends.
func (p *Process) Write(data []byte) (int, error) { return p.program.In.Write(data) }

// LimitWrites bounds the duration of writes from now on, including those under way. 0 removes the bound.
func (p *Process) LimitWrites(limit time.Duration) {
	if limit == 0 {
		p.setWriteDeadline(time.Time{})
		return
	}
	p.setWriteDeadline(time.Now().Add(limit))
}

func (p *Process) setWriteDeadline(deadline time.Time) {
	_ = p.program.In.SetWriteDeadline(deadline) // without deadlines, the end of the program bounds writes
}

// CloseInput closes the program's stdin.
func (p *Process) CloseInput() { _ = p.program.In.Close() }

// Stop starts to end the group, and does not wait for it.
func (p *Process) Stop() { p.once.Do(func() { close(p.stop) }) }

// Runs reports whether the program is still running and Stop was not called.
func (p *Process) Runs() bool {
	select {
	case <-p.program.Exited():
	case <-p.stop:
	default:
		return true
	}
	return false
}

// Ended is closed when the program and its group are gone.
func (p *Process) Ended() <-chan struct{} { return p.gone }

// End ends the group and returns when it is gone. It may be called twice.
func (p *Process) End() {
	p.Stop()
	<-p.gone
	p.running.Wait() // the rest of stderr is still read
	for _, file := range p.files() {
		_ = file.Close() // no pending write matters any more
	}
}

// Failure returns how an ended program failed, nil when it succeeded. Call it after End.
func (p *Process) Failure() error {
	switch {
	case p.stuck:
		return fmt.Errorf("%q cannot be ended and was left alone (process %d)%s", p.name, p.program.PID(), p.said.words())
	case p.program.Status() != nil:
		return fmt.Errorf("%q ended with %w%s", p.name, p.program.Status(), p.said.words())
	}
	return nil
}

// Words returns the end of the program's stderr, after introductory text, "" when stderr was empty.
func (p *Process) Words() string { return p.said.words() }
