//go:build linux

package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/continuo-log/continuo/model/internal/child/childtest"
)

func TestMain(m *testing.M) {
	childtest.Main(m, map[string]func(){
		"block": childtest.Block,
		"echo": func() {
			conn := childtest.Report()
			_, _ = io.Copy(conn, conn)
		},
		"stubborn": func() {
			signal.Ignore(syscall.SIGTERM)
			childtest.Block()
		},
		"family": func() {
			start("stubborn", &syscall.SysProcAttr{})
			signal.Ignore(syscall.SIGTERM)
			childtest.Block()
		},
		"leaver": func() {
			start("block", &syscall.SysProcAttr{Setsid: true})
			fmt.Println("last words")
		},
		"server": func() {
			p, err := Start(Options{Command: []string{os.Args[0]}, Env: []string{"CHILDTEST_ROLE=stubborn", "CHILDTEST_WITNESS=" + os.Getenv("CHILDTEST_WITNESS")}})
			if err != nil {
				panic(err)
			}
			defer p.End()
			childtest.Block()
		},
		"last":    func() { fmt.Print("out"); fmt.Fprint(os.Stderr, "why"); os.Exit(7) },
		"flooder": func() { start("flood", &syscall.SysProcAttr{Setsid: true}) },
		"flood": func() {
			_ = childtest.Report()
			for {
				if _, err := fmt.Fprint(os.Stderr, strings.Repeat("flood ", 1000)); err != nil {
					return
				}
			}
		},
		"environment": func() { fmt.Print(strings.Join(os.Environ(), "\n")) },
		"stderr": func() {
			fmt.Fprint(os.Stderr, strings.Repeat("noise ", 5000), "\x1b[31mlast words\x1b[0m\n")
			os.Exit(7)
		},
		"suicide": func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} },
	})
}

// start starts a process of the same binary that shares this one's pipes.
func start(role string, attributes *syscall.SysProcAttr) {
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "CHILDTEST_ROLE="+role)
	other.Stdout, other.Stderr, other.SysProcAttr = os.Stdout, os.Stderr, attributes
	if err := other.Start(); err != nil {
		panic(err)
	}
}

func run(t *testing.T, env []string, grace time.Duration) *Process {
	t.Helper()
	p, err := Start(Options{Command: []string{os.Args[0]}, Env: env, Grace: grace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.End()
		childtest.NoGoroutines(t)
	})
	return p
}

func TestEndEndsTheWholeGroup(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("family"), 20*time.Millisecond)
	one, other := w.Running(), w.Running()
	p.End()
	w.Gone(one)
	w.Gone(other)
	if err := p.Failure(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("the failure is %v", err)
	}
	p.End()
}

func TestReadEndsAlthoughSomebodyHoldsTheOutput(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("leaver"), time.Second)
	defer w.Running().Close() // it left the group, and ends when the test says so
	<-p.Ended()
	text, err := io.ReadAll(p)
	if string(text) != "last words\n" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	p.End()
	if err := p.Failure(); err != nil {
		t.Error(err)
	}
}

func TestEndComesAlthoughSomebodyElseWrites(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("flooder"), time.Second)
	flood := w.Running()
	<-p.Ended()
	p.End()
	w.Gone(flood) // nobody reads what it writes any more
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
func TestAChildOutlivesTheThreadOfItsCaller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("threads do not matter here")
	}
	w := childtest.NewWitness(t)
	begun := make(chan *Process)
	threads := make(chan int, 1)
	var caller func()
	caller = func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if syscall.Gettid() == os.Getpid() {
			other := make(chan struct{})
			go func() { defer close(other); caller() }()
			<-other // the first thread never ends
			runtime.UnlockOSThread()
			return
		}
		threads <- syscall.Gettid()
		p, err := Start(Options{Command: []string{os.Args[0]}, Env: w.Env("echo")})
		if err != nil {
			t.Error(err)
		}
		begun <- p
	}
	go caller()
	thread := fmt.Sprintf("/proc/self/task/%d", <-threads)
	p := <-begun
	defer p.End()
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
	p := run(t, append(childtest.Env("environment"), "GIVEN=a b"), 0)
	text, _ := io.ReadAll(p)
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

// The last words are what people need most.
func TestNothingIsLostAtTheEnd(t *testing.T) {
	for range 100 {
		p := run(t, childtest.Env("last"), 0)
		text, _ := io.ReadAll(p)
		<-p.Ended()
		p.End()
		if err := p.Failure(); string(text) != "out" || err == nil || !strings.HasSuffix(err.Error(), "exit status 7; its stderr: why") {
			t.Fatalf("got %q, %v", text, err)
		}
	}
}

func TestFailureSaysHowItEnded(t *testing.T) {
	p := run(t, childtest.Env("stderr"), 0)
	if text, _ := io.ReadAll(p); len(text) > 0 {
		t.Errorf("it printed %q", text)
	}
	<-p.Ended()
	p.End()
	err := p.Failure()
	if err == nil || !strings.Contains(err.Error(), "exit status 7; its stderr ended with: …") || !strings.HasSuffix(err.Error(), "noise last words") || len(err.Error()) > maxTail+500 {
		t.Errorf("got %v", err)
	}
	p = run(t, childtest.Env("suicide"), 0)
	<-p.Ended()
	p.End()
	if err := p.Failure(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("got %v", err)
	}
}

func TestWritesEndWithTheProgram(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("block"), time.Second)
	conn := w.Running()
	written := make(chan error)
	go func() {
		_, err := p.Write(make([]byte, 10<<20))
		written <- err
	}()
	p.Stop()
	if err := <-written; err == nil {
		t.Error("a program that reads nothing took all of it")
	}
	p.End()
	w.Gone(conn)
}

func TestAProgramThatIsNotThere(t *testing.T) {
	for _, name := range []string{"no-such-program-anywhere", "/no/such/program", t.TempDir()} {
		if _, err := Start(Options{Command: []string{name}}); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("start %q: ", name)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	childtest.NoGoroutines(t)
	before := descriptors()
	for range 20 {
		_, _ = Start(Options{Command: []string{"/no/such/program"}})
	}
	if after := descriptors(); after > before {
		t.Errorf("%d files were open, and %d are", before, after)
	}
}

func descriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	kept.read(io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("0123456789"), 1000)), strings.NewReader("the end\n\n")))
	if words := kept.words(); !strings.HasPrefix(words, "; its stderr ended with: …") || !strings.HasSuffix(words, "9the end") {
		t.Errorf("got %q", words)
	}
	if cap(kept.kept) > 64<<10 {
		t.Errorf("it holds %d bytes", cap(kept.kept))
	}
}
