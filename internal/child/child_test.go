//go:build unix

package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/child/childtest"
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
			childtest.Start("stubborn", nil)
			signal.Ignore(syscall.SIGTERM)
			childtest.Block()
		},
		"orphan": func() { childtest.Start("stubborn", nil) },
		"server": func() {
			own := append(childtest.Env("stubborn"), "CHILDTEST_WITNESS="+os.Getenv("CHILDTEST_WITNESS"))
			p, err := launch(Options{Command: []string{os.Args[0]}, Env: own})
			if err != nil {
				panic(err)
			}
			defer p.end(0)
			childtest.Block()
		},
		"environment": func() { fmt.Print(strings.Join(os.Environ(), "\n")) },
		"copy":        func() { _, _ = io.Copy(os.Stdout, os.Stdin); fmt.Fprint(os.Stderr, "done"); os.Exit(7) },
		"leaver": func() {
			childtest.Start("block", &syscall.SysProcAttr{Setsid: true})
			fmt.Println("last words")
		},
		"last":    func() { fmt.Print("out"); fmt.Fprint(os.Stderr, "why"); os.Exit(7) },
		"flooder": func() { childtest.Start("flood", &syscall.SysProcAttr{Setsid: true}) },
		"flood": func() {
			_ = childtest.Report()
			for {
				if _, err := fmt.Fprint(os.Stderr, strings.Repeat("flood ", 1000)); err != nil {
					return
				}
			}
		},
		"stderr": func() {
			fmt.Fprint(os.Stderr, strings.Repeat("noise ", 5000), "\x1b[31mlast words\x1b[0m\n")
			os.Exit(7)
		},
		"suicide": func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} },
		"saver":   func() { _, _ = io.Copy(io.Discard, os.Stdin); fmt.Fprintln(os.Stderr, "saved") },
		"lines":   func() { fmt.Fprintf(os.Stderr, "first\n\n%s\nlast\n", strings.Repeat("x", 2*maxStderrLine)) },
		"reader": func() {
			conn := childtest.Report()
			_, _ = io.ReadFull(conn, make([]byte, 1))
			_, _ = io.CopyN(os.Stdout, os.Stdin, 1<<20)
		},
	})
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

func TestReadEndsWhileAnotherProcessHoldsTheOutput(t *testing.T) {
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

func TestEndReturnsWhileAnotherProcessWrites(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("flooder"), time.Second)
	flood := w.Running()
	<-p.Ended()
	p.End()
	w.Gone(flood) // nobody reads what it writes any more
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

func TestFailureReportsHowItEnded(t *testing.T) {
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

// A bound on writes can be taken away again, for a program that is spoken to for long.
func TestWritesAreBoundedForAWhile(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("reader"), time.Second)
	conn := w.Running()
	p.LimitWrites(time.Nanosecond)
	if _, err := p.Write(make([]byte, 1<<20)); err == nil {
		t.Error("a program that reads nothing took all of it")
	}
	p.LimitWrites(0)
	_, _ = conn.Write([]byte("x")) // it reads from now on
	written := make(chan error)
	go func() {
		_, err := p.Write(make([]byte, 1<<20))
		written <- err
	}()
	if n, err := io.CopyN(io.Discard, p, 1<<20); err != nil {
		t.Errorf("after %d bytes: %v", n, err)
	}
	p.Stop()
	<-written // it may have had a part of the first write before
}

func TestRuns(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("block"), time.Second)
	conn := w.Running()
	if !p.Runs() {
		t.Error("a program that runs does not")
	}
	conn.Close()
	<-p.Ended()
	if p.Runs() {
		t.Error("a program that has ended runs")
	}
	p = run(t, w.Env("block"), time.Second)
	if p.Stop(); p.Runs() {
		t.Error("a program that is to end counts as one that runs")
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	if _, err := Start(Options{Command: []string{"no-such-program-anywhere"}}); err == nil || !strings.HasPrefix(err.Error(), `start "no-such-program-anywhere": `) {
		t.Errorf("got %v", err)
	}
	childtest.NoGoroutines(t)
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	kept.read(io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("0123456789"), 1000)), strings.NewReader("the end\n\n")))
	if words := kept.quoted(); !strings.HasPrefix(words, "; its stderr ended with: …") || !strings.HasSuffix(words, "9the end") {
		t.Errorf("got %q", words)
	}
	if cap(kept.kept) > 64<<10 {
		t.Errorf("it holds %d bytes", cap(kept.kept))
	}
}

// A program that ends when its stdin is closed can save first, and is not killed.
func TestCloseLetsTheProgramSave(t *testing.T) {
	p := run(t, childtest.Env("saver"), time.Hour)
	p.Close()
	if err := p.Failure(); err != nil || p.LastLine() != "saved" || p.Stuck() {
		t.Errorf("it said %q, and ended with %v", p.LastLine(), err)
	}
}

func TestCloseEndsAProgramThatStays(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("block"), 20*time.Millisecond)
	conn := w.Running()
	p.Close()
	w.Gone(conn)
	if err := p.Failure(); err == nil || !strings.Contains(err.Error(), "signal: ") {
		t.Errorf("it ended with %v", err)
	}
}

// The grace period bounds the time that a program has to end by itself, not the time that the system takes to kill it.
func TestAKilledProgramIsWaitedForAfterAShortGracePeriod(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("block"), time.Nanosecond)
	conn := w.Running()
	p.Close()
	if p.Stuck() || p.Status() == nil {
		t.Errorf("stuck: %t; it ended with %v", p.Stuck(), p.Status())
	}
	w.Gone(conn)
}

// A program that reads nothing does not block a writer for longer than its context.
func TestAWriteEndsWithItsContext(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("block"), time.Second)
	w.Running()
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan error)
	go func() {
		_, err := p.WriteWithin(ctx, make([]byte, 10<<20))
		written <- err
	}()
	cancel()
	if err := <-written; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n, err := p.WriteWithin(ctx, []byte("x")); n > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("after its end it wrote %d bytes, %v", n, err)
	}
}

// Disconnect ends reads and writes in progress, and leaves the program running.
func TestDisconnect(t *testing.T) {
	w := childtest.NewWitness(t)
	p := run(t, w.Env("block"), time.Second)
	w.Running()
	ended := make(chan error, 2)
	go func() { _, err := io.ReadAll(p); ended <- err }()
	go func() { _, _ = p.Write(make([]byte, 10<<20)); ended <- nil }()
	p.Disconnect()
	if err := errors.Join(<-ended, <-ended); err != nil || !p.Runs() {
		t.Errorf("it runs: %v, %v", p.Runs(), err)
	}
}

func TestStderrIsPassedOnByLine(t *testing.T) {
	var lines []string
	p, err := Start(Options{Command: []string{os.Args[0]}, Env: childtest.Env("lines"), Stderr: func(line []byte) { lines = append(lines, string(line)) }})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	p.End()
	if want := []string{"first", "", strings.Repeat("x", maxStderrLine), "last"}; !slices.Equal(lines, want) {
		t.Errorf("got %.200q", lines)
	}
}
