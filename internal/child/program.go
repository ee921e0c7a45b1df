package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// program is a started program, the leader of its group. Its methods are safe for concurrent use.
type program struct {
	// in, out and err are this process's ends of the program's stdin, stdout and stderr. The caller of launch closes
	// them.
	in, out, err *os.File

	leader *os.Process
	exited chan struct{}
	status error // read it after exited
	ending sync.Once
}

// launch starts a program. The caller ends it.
func launch(options Options) (*program, error) {
	p := &program{exited: make(chan struct{})}
	command := exec.Command(options.Command[0], options.Command[1:]...) //nolint:gosec // the settings name it
	command.Dir, command.Env = options.Dir, environment(options.Env)
	command.SysProcAttr = attributes(!options.Free)
	theirs, err := p.pipes(command)
	if err != nil {
		return nil, fmt.Errorf("start %q: make pipes: %w", options.Command[0], err)
	}
	err = p.fork(command)
	closeAll(theirs) // the program has its own copies
	if err != nil {
		closeAll(p.files())
		return nil, fmt.Errorf("start %q: %w", options.Command[0], startReason(err))
	}
	return p, nil
}

// pipes makes the program's three pipes and returns its ends of them. They are made here rather than by os/exec because
// reads and writes of these files can be cancelled.
func (p *program) pipes(command *exec.Cmd) (theirs []*os.File, err error) {
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
	p.in, p.out, p.err = all[1], all[2], all[4]
	return []*os.File{all[0], all[3], all[5]}, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close() // nothing was written to it
	}
}

// fork starts the program on a thread that lives as long as it does: a bound program dies with the thread that forked
// it, and other threads may end at any time. Waiting needs a thread anyway.
func (p *program) fork(command *exec.Cmd) error {
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

// startReason removes from an error what the caller's own message says already.
func startReason(err error) error {
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		return lookup.Err
	}
	return err
}

// inherited names the variables that a program inherits from this process's environment. Windows cannot start programs
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

func (p *program) files() []*os.File { return []*os.File{p.in, p.out, p.err} }

// end ends the group and returns when it is gone: its members get a request to end, the grace period for it, and are
// killed. It waits for their death as long as the grace period again, or killTime if that is longer. It may be called more than once; later calls do nothing, because the id
// of a group that is gone may be another's by then. Call it soon after the program has ended, for the same reason.
func (p *program) end(grace time.Duration) { p.ending.Do(func() { p.endGroup(grace) }) }

// pid is the id of the program's process, and of its group.
func (p *program) pid() int { return p.leader.Pid }
