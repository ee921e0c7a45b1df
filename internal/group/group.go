// Package group runs a program in a process group of its own: what it starts stands in the group too and is ended
// with it, and a Ctrl-C at the terminal is this process's alone. The program's environment has nothing but what it
// was given, besides the few variables that programs do not run without.
//
// Pitfalls: who leaves the group is not ended. A member that has ended counts until its parent has asked for its
// status. On systems without process groups only the program itself is ended.
package group

import (
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
	// Env is NAME=value, besides PATH, HOME, LANG and TMPDIR, which are this process's own. Of a name that is there
	// twice the last value counts.
	Env []string
	// Bound has the program itself killed when this process ends, however that is; on Linux only. Default: all that
	// tells it is that its pipes break.
	Bound bool
}

// Program is a program that was started, the leader of its group. Its methods are safe for concurrent use.
type Program struct {
	// In, Out and Err are our ends of the program's stdin, stdout and stderr. Whoever started it closes them.
	In, Out, Err *os.File

	leader *os.Process
	exited chan struct{}
	status error // read it after exited
	ending sync.Once
}

// Start starts a program. The caller ends it.
func Start(options Options) (*Program, error) {
	p := &Program{exited: make(chan struct{})}
	command := exec.Command(options.Command[0], options.Command[1:]...) //nolint:gosec // the settings name it
	command.Dir, command.Env = options.Dir, environment(options.Env)
	command.SysProcAttr = attributes(options.Bound)
	theirs, err := p.pipes(command)
	if err != nil {
		return nil, fmt.Errorf("start %q: make pipes: %w", options.Command[0], err)
	}
	err = p.fork(command)
	closeAll(theirs) // the program has its own
	if err != nil {
		closeAll([]*os.File{p.In, p.Out, p.Err})
		return nil, fmt.Errorf("start %q: %w", options.Command[0], startReason(err))
	}
	return p, nil
}

// pipes makes the program's three pipes and returns its ends of them. They are made here rather than by os/exec
// because reads and writes of these files can be broken off.
func (p *Program) pipes(command *exec.Cmd) (theirs []*os.File, err error) {
	var all []*os.File
	for range 3 {
		read, write, err := os.Pipe()
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, read, write)
	}
	command.Stdin, command.Stdout, command.Stderr = all[0], all[3], all[5]
	p.In, p.Out, p.Err = all[1], all[2], all[4]
	return []*os.File{all[0], all[3], all[5]}, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close() // nothing was written to it
	}
}

// fork starts the program on a thread that lives as long as it does: a bound program dies with the thread that made
// it, and other threads may end at any time. Waiting takes a thread anyway.
func (p *Program) fork(command *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		p.leader = command.Process
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

// environment is the whole environment of a program.
func environment(own []string) []string {
	env := []string{}
	for _, name := range inherited() {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, own...)
}

// End ends the group and returns when it is gone, at the latest after twice the grace: what is in it is asked to go,
// has the grace for it, and is killed. It may be called more than once; later calls do nothing, because the number of
// a group that is gone may be another's by then. Call it soon after the program has ended, for the same reason.
func (p *Program) End(grace time.Duration) { p.ending.Do(func() { p.end(grace) }) }

// PID is the program's number, and its group's.
func (p *Program) PID() int { return p.leader.Pid }

// Exited is closed when the program itself has ended; others of its group may be there still.
func (p *Program) Exited() <-chan struct{} { return p.exited }

// Status says how the program ended, nil when it ended well. Call it after Exited.
func (p *Program) Status() error { return p.status }
