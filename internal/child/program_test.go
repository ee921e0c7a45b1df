//go:build unix

package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/child/childtest"
)

func start(t *testing.T, env []string) *program {
	t.Helper()
	p, err := launch(Options{Command: []string{os.Args[0]}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.end(20 * time.Millisecond)
		<-p.exited
		closeAll(p.files())
		childtest.NoGoroutines(t)
	})
	return p
}

func TestEndEndsTheWholeGroup(t *testing.T) {
	w := childtest.NewWitness(t)
	p := start(t, w.Env("family"))
	one, other := w.Running(), w.Running()
	p.end(20 * time.Millisecond)
	w.Gone(one)
	w.Gone(other)
	<-p.exited
	if err := p.status; err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with %v", err)
	}
	p.end(time.Hour) // there is nothing to wait for any more
}

func TestAGroupSurvivesItsLeader(t *testing.T) {
	w := childtest.NewWitness(t)
	p := start(t, w.Env("orphan"))
	orphan := w.Running()
	<-p.exited
	if err := syscall.Kill(-p.pid(), 0); err != nil {
		t.Errorf("the group is gone already: %v", err)
	}
	p.end(20 * time.Millisecond)
	w.Gone(orphan)
}

// Who is asked nicely and goes is not waited for any longer.
func TestEndReturnsWhenTheGroupIsGone(t *testing.T) {
	w := childtest.NewWitness(t)
	p := start(t, w.Env("block"))
	conn := w.Running()
	p.end(time.Hour)
	w.Gone(conn)
	<-p.exited
	if err := p.status; err == nil || err.Error() != "signal: terminated" {
		t.Errorf("it ended with %v", err)
	}
}

func TestAProcessOutsideTheGroupSurvives(t *testing.T) {
	w := childtest.NewWitness(t)
	p := start(t, w.Env("leaver"))
	left := w.Running()
	p.end(20 * time.Millisecond)
	if err := left.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := left.Read(make([]byte, 1)); !os.IsTimeout(err) {
		t.Errorf("a process that left the group is gone: %v", err)
	}
	left.Close() // which ends it
}

func TestTheThreePipes(t *testing.T) {
	p := start(t, childtest.Env("copy"))
	if _, err := p.in.WriteString("said and heard"); err != nil {
		t.Fatal(err)
	}
	_ = p.in.Close()
	output, _ := io.ReadAll(p.out)
	wrong, _ := io.ReadAll(p.err)
	<-p.exited
	if string(output) != "said and heard" || string(wrong) != "done" || p.status == nil || p.status.Error() != "exit status 7" {
		t.Errorf("got %q and %q, %v", output, wrong, p.status)
	}
}

func TestAKilledProgramLeavesNoChildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel does not do that here: a program that is left ends when its pipes break")
	}
	w := childtest.NewWitness(t)
	server := exec.Command(os.Args[0])
	server.Env = w.Env("server")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	one, other := w.Running(), w.Running()
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // it was killed
	w.Gone(one)
	w.Gone(other)
}

// The kernel kills a program when the thread that forked it ends, and threads end at any time.
func TestAProgramSurvivesTheThreadOfItsCaller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads do not matter here")
	}
	w := childtest.NewWitness(t)
	begun := make(chan *program)
	threads := make(chan int, 1)
	go onAnotherThread(func(thread int) {
		threads <- thread
		p, err := launch(Options{Command: []string{os.Args[0]}, Env: w.Env("echo")})
		if err != nil {
			t.Error(err)
		}
		begun <- p
	})
	thread := fmt.Sprintf("/proc/self/task/%d", <-threads)
	p := <-begun
	if p == nil {
		return
	}
	defer closeAll(p.files())
	defer p.end(0)
	for {
		if _, err := os.Stat(thread); errors.Is(err, os.ErrNotExist) {
			break
		}
		runtime.Gosched()
	}
	conn := w.Running()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Errorf("the program does not answer any more: %v", err)
	}
}

func TestTheEnvironmentIsClean(t *testing.T) {
	t.Setenv("SECRET", "canary")
	p := start(t, append(childtest.Env("environment"), "GIVEN=first", "GIVEN=a b"))
	text, _ := io.ReadAll(p.out)
	for line := range strings.SplitSeq(string(text), "\n") {
		switch name, value, _ := strings.Cut(line, "="); name {
		case "PATH", "HOME", "LANG", "TMPDIR", "CHILDTEST_ROLE":
		case "GIVEN":
			if value != "a b" {
				t.Errorf("got %s", line)
			}
		default:
			t.Errorf("it has %s", line)
		}
	}
	if !strings.Contains(string(text), "GIVEN=") {
		t.Errorf("the environment is %q", text)
	}
}

func TestAProgramThatCannotBeStarted(t *testing.T) {
	for _, name := range []string{"no-such-program-anywhere", "/no/such/program", t.TempDir()} {
		if _, err := launch(Options{Command: []string{name}}); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("start %q: ", name)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	childtest.NoGoroutines(t)
	before := descriptors()
	for range 20 {
		_, _ = launch(Options{Command: []string{"/no/such/program"}})
	}
	if after := descriptors(); after > before {
		t.Errorf("%d files were open, and %d are", before, after)
	}
}

func descriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd") // elsewhere there are none to count
	return len(entries)
}
