package child

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
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
	name  string
	grace time.Duration
	in    *os.File // the program's stdin
	out   *output  // its stdout
	errs  *output  // its stderr
	said  tail

	begun   *os.Process   // set once started
	exited  chan struct{} // closed when the program itself has ended
	status  error         // how; read it after exited
	stop    chan struct{} // closed by Stop
	gone    chan struct{} // closed when the group is gone, or cannot be ended
	stuck   bool          // it cannot be ended; read it after gone
	once    sync.Once
	running sync.WaitGroup
}

// Start starts a program. The caller ends it.
func Start(options Options) (*Process, error) {
	p := &Process{
		name: options.Command[0], grace: cmp.Or(options.Grace, 2*time.Second),
		exited: make(chan struct{}), stop: make(chan struct{}), gone: make(chan struct{}),
	}
	p.said.hide(options.Env)
	command := exec.Command(options.Command[0], options.Command[1:]...) //nolint:gosec // the settings name it
	command.Dir, command.Env = options.Dir, environment(options.Env)
	attributes(command)
	theirs, err := p.pipes(command)
	if err != nil {
		return nil, err
	}
	err = p.fork(command)
	for _, end := range theirs {
		_ = end.Close() // the program has its own
	}
	if err != nil {
		p.closeFiles()
		return nil, fmt.Errorf("start %q: %w", p.name, startReason(err))
	}
	p.running.Go(p.watch)
	p.running.Go(func() { p.said.read(p.errs) })
	return p, nil
}

// pipes makes the program's three pipes and returns its ends of them. They are made here rather than by os/exec
// because reads and writes of these files can be broken off.
func (p *Process) pipes(command *exec.Cmd) (theirs []*os.File, err error) {
	var all []*os.File
	for range 3 {
		read, write, err := os.Pipe()
		if err != nil {
			for _, end := range all {
				_ = end.Close()
			}
			return nil, fmt.Errorf("start %q: make pipes: %w", p.name, err)
		}
		all = append(all, read, write)
	}
	command.Stdin, command.Stdout, command.Stderr = all[0], all[3], all[5]
	p.in, p.out, p.errs = all[1], &output{File: all[2]}, &output{File: all[4]}
	return []*os.File{all[0], all[3], all[5]}, nil
}

// fork starts the program on a thread that lives as long as it does: the program is told to die with the thread
// that made it, and other threads may end at any time.
func (p *Process) fork(command *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		p.begun = command.Process
		started <- err
		if err == nil {
			p.status = command.Wait()
			close(p.exited)
		}
	}()
	return <-started
}

// startReason takes out of an error what the caller's own words say already.
func startReason(err error) error {
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		return lookup.Err
	}
	return err
}

// inherited names the variables that a program gets of this process's environment. Windows cannot start programs
// without the second group.
func inherited() []string {
	names := []string{"PATH", "HOME", "LANG", "TMPDIR"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT", "PATHEXT", "COMSPEC", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
	}
	return names
}

// environment is the whole environment of a program; of a name that is there twice the last value counts.
func environment(own []string) []string {
	env := []string{}
	for _, name := range inherited() {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, own...)
}

// watch ends the group when the program has ended or is to end, and lets readers and writers go.
func (p *Process) watch() {
	defer close(p.gone)
	select {
	case <-p.exited:
	case <-p.stop:
	}
	endGroup(p.begun, p.grace)
	limit := time.NewTimer(p.grace)
	defer limit.Stop()
	select {
	case <-p.exited:
	case <-limit.C:
		p.stuck = true // it has other rights than this process, or hangs in the system
	}
	past := time.Unix(1, 0)
	for _, file := range []*os.File{p.in, p.out.File, p.errs.File} {
		if file.SetDeadline(past) != nil { // where files have no deadlines
			_ = file.Close()
		}
	}
}

// Read reads what the program says on stdout. It ends with io.EOF: when the program has closed it, or when the
// group is gone and all is read that was said until then.
func (p *Process) Read(buffer []byte) (int, error) { return p.out.Read(buffer) }

// Write writes to the program's stdin. It is broken off when the program ends.
func (p *Process) Write(data []byte) (int, error) { return p.in.Write(data) }

// LimitWrites bounds how long writes may take from now on, those that are under way too.
func (p *Process) LimitWrites(limit time.Duration) {
	_ = p.in.SetWriteDeadline(time.Now().Add(limit)) // where there is none, the end of the program bounds them
}

// CloseInput tells the program that nothing more will come.
func (p *Process) CloseInput() { _ = p.in.Close() }

// Stop has the group ended, and does not wait for it.
func (p *Process) Stop() { p.once.Do(func() { close(p.stop) }) }

// Ended is closed when the program and its group are gone.
func (p *Process) Ended() <-chan struct{} { return p.gone }

// End has the group ended and returns when it is gone. It may be called twice.
func (p *Process) End() {
	p.Stop()
	<-p.gone
	p.running.Wait() // what stands in stderr is still read
	p.closeFiles()
}

func (p *Process) closeFiles() {
	for _, file := range []*os.File{p.in, p.out.File, p.errs.File} {
		_ = file.Close() // nothing is to be written that must arrive
	}
}

// Failure says how an ended program failed, nil when it ended well. Call it after End.
func (p *Process) Failure() error {
	switch {
	case p.stuck:
		return fmt.Errorf("%q cannot be ended and was left alone (process %d)%s", p.name, p.begun.Pid, p.said.words())
	case p.status != nil:
		return fmt.Errorf("%q ended with %w%s", p.name, p.status, p.said.words())
	}
	return nil
}

// Words is what the program said last on stderr, behind words that lead to it, "" when it said nothing.
func (p *Process) Words() string { return p.said.words() }
