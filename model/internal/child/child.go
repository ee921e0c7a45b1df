package child

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/continuo-log/continuo/internal/group"
)

// Options says what to start.
type Options struct {
	Command []string // the program and its arguments
	Dir     string   // where it starts. Default: where this process did
	// Env is NAME=value, besides PATH, HOME, LANG and TMPDIR, which are this process's own.
	Env []string
	// Grace is how long the group may take to go when it is asked to, before it is killed. Default 2 s.
	Grace time.Duration
}

// Process is a program that was started. Read is for one goroutine; the rest is safe for concurrent use.
type Process struct {
	name    string
	grace   time.Duration
	program *group.Program
	out     *output // its stdout
	errs    *output // its stderr
	said    tail

	stop    chan struct{} // closed by Stop
	gone    chan struct{} // closed when the group is gone, or cannot be ended
	stuck   bool          // it cannot be ended; read it after gone
	once    sync.Once
	running sync.WaitGroup
}

// Start starts a program. The caller ends it.
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

// watch ends the group when the program has ended or is to end, and lets readers and writers go.
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
		p.stuck = true // it has other rights than this process, or hangs in the system
	}
	past := time.Unix(1, 0)
	for _, file := range p.files() {
		if file.SetDeadline(past) != nil { // where files have no deadlines
			_ = file.Close()
		}
	}
}

func (p *Process) files() []*os.File { return []*os.File{p.program.In, p.program.Out, p.program.Err} }

// Read reads what the program says on stdout. It ends with io.EOF: when the program has closed it, or when the
// group is gone and all is read that was said until then.
func (p *Process) Read(buffer []byte) (int, error) { return p.out.Read(buffer) }

// Write writes to the program's stdin. It is broken off when the program ends.
func (p *Process) Write(data []byte) (int, error) { return p.program.In.Write(data) }

// LimitWrites bounds how long writes may take from now on, those that are under way too. 0 takes the bound away.
func (p *Process) LimitWrites(limit time.Duration) {
	if limit == 0 {
		p.setWriteDeadline(time.Time{})
		return
	}
	p.setWriteDeadline(time.Now().Add(limit))
}

func (p *Process) setWriteDeadline(deadline time.Time) {
	_ = p.program.In.SetWriteDeadline(deadline) // where there is none, the end of the program bounds writes
}

// CloseInput tells the program that nothing more will come.
func (p *Process) CloseInput() { _ = p.program.In.Close() }

// Stop has the group ended, and does not wait for it.
func (p *Process) Stop() { p.once.Do(func() { close(p.stop) }) }

// Runs reports whether the program itself has not ended, nor been told to.
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

// End has the group ended and returns when it is gone. It may be called twice.
func (p *Process) End() {
	p.Stop()
	<-p.gone
	p.running.Wait() // what stands in stderr is still read
	for _, file := range p.files() {
		_ = file.Close() // nothing is to be written that must arrive
	}
}

// Failure says how an ended program failed, nil when it ended well. Call it after End.
func (p *Process) Failure() error {
	switch {
	case p.stuck:
		return fmt.Errorf("%q cannot be ended and was left alone (process %d)%s", p.name, p.program.PID(), p.said.words())
	case p.program.Status() != nil:
		return fmt.Errorf("%q ended with %w%s", p.name, p.program.Status(), p.said.words())
	}
	return nil
}

// Words is what the program said last on stderr, behind words that lead to it, "" when it said nothing.
func (p *Process) Words() string { return p.said.words() }
