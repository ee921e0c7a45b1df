package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"
)

// openTerminal opens a pseudo terminal of 90 by 30: person is what a person types into and sees, program what a program
// has for its terminal.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: there are no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	var name, lock uint32
	size := [4]uint16{30, 90}
	control(t, person, syscall.TIOCGPTN, unsafe.Pointer(&name))
	control(t, person, syscall.TIOCSPTLCK, unsafe.Pointer(&lock))
	control(t, person, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", name), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: a pseudo terminal cannot be opened: %v", err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

func control(t *testing.T, file *os.File, request uintptr, argument unsafe.Pointer) {
	t.Helper()
	raw, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed syscall.Errno
	if err := raw.Control(func(fd uintptr) { _, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(argument)) }); err != nil || failed != 0 {
		t.Fatalf("prepare a terminal: %v, %v", err, failed)
	}
}

// inTerminal is a program in a terminal of its own.
type inTerminal struct {
	*program
	person *os.File
}

// startInTerminal runs the program as a person would; what it shows is in stdout.
func startInTerminal(t *testing.T, dir string, args ...string) inTerminal {
	t.Helper()
	person, tty := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Args[0] = "continuo"
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TERM=xterm-256color", "CONTINUO_STORE_PATH=" + filepath.Join(dir, "continuo.db")}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := inTerminal{&program{Cmd: cmd, t: t, stdout: newWatched(), stderr: newWatched()}, person}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close() // the program has it
	var seeing sync.WaitGroup
	seeing.Go(func() { _, _ = io.Copy(p.stdout, person) }) // ends with an error when the program has left
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		seeing.Wait()
	})
	return p
}

func (p inTerminal) types(text string) {
	p.t.Helper()
	if _, err := p.person.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// A chat with a crew: it is shown live, Ctrl-C stops it and the chat continues, and the commands know the crew.
func TestCrewChatInATerminal(t *testing.T) {
	dir := t.TempDir()
	p := startInTerminal(t, dir, "--set", "demo.pace=150ms", "crew", "run")
	p.stdout.wait(t, `Planner.*Builder.*Reviewer[^›]*Nothing has been said yet\.[^›]*› `)
	p.types("Make a plan for a small garden.\r")
	p.stdout.wait(t, `Planner is speaking…[^P]*\r\x1b\[K\x1b\[1m\x1b\[36mPlanner\x1b\[0m`) // the sign goes, and the name comes
	p.stdout.wait(t, "  I am Continuo's")
	p.types("\x03")
	p.stdout.wait(t, `Stopped\. /resume or any message continues[^›]*› `)
	p.types("/sta\t\r")
	p.stdout.wait(t, `stopped.*a person stopped it(?s:.*)planner(?s:.*)› `)
	p.types("/context pl\t\r")
	p.stdout.wait(t, `planner\x1b\[0m  \x1b\[2mof example · now, at entry \d+(?s:.*)User:\x1b\[0m Make a plan for a small garden\.(?s:.*)› `)
	p.types("/reset\r")
	p.stdout.wait(t, `The crew is reset\.[^›]*› `)
	p.types("/restore\r")
	p.stdout.wait(t, `reset was undone[^›]*› `)
	p.types("/nothing\r")
	p.stdout.wait(t, `there is no command /nothing[^›]*› `)
	p.types("\x04")
	p.stdout.wait(t, "Continue with: continuo crew run example")
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, p.stdout)
	}
}

// A person at the terminal is asked about calls, and what they decide counts.
func TestCrewAsksAtTheTerminal(t *testing.T) {
	dir := t.TempDir()
	p := startInTerminal(t, dir, "--set", "tools.ask=fs.list", "--set", "tools.project_dir="+dir, "--set", "demo.pace=1ms", "crew", "run", "example", `call fs.list {"path": "@project"}`)
	for _, role := range []string{"Planner", "Builder"} {
		question := role + `\x1b(?s:.*)May this run\?\x1b\[0m fs\.list(?s:.*)› `
		p.stdout.wait(t, question)
		p.types("n\r")
		p.stdout.wait(t, question+`(?s:.*)✗ not allowed: fs\.list`)
	}
	p.stdout.wait(t, `The cycle has ended`)
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, p.stdout)
	}
	if text := p.stdout.String(); strings.Count(text, "May this run?") != 2 {
		t.Errorf("it asked otherwise than once for each call:\n%s", text)
	}
}
