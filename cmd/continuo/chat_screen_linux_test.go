package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/charmbracelet/x/vt"
)

// onScreen is a program in a terminal that draws: what the person sees now is in seen.
type onScreen struct {
	*program
	person   *os.File
	emulator *vt.SafeEmulator
	seen     *watchedScreen
}

// watchedScreen is the picture of a terminal, which can be waited for like other output.
type watchedScreen struct {
	watched
	emulator *vt.SafeEmulator
	width    int
}

// Write draws, and replaces the text by the new picture.
func (w *watchedScreen) Write(data []byte) (int, error) {
	_, _ = w.emulator.Write(data)
	picture := w.picture()
	w.mu.Lock()
	w.text.Reset()
	w.mu.Unlock()
	_, _ = w.watched.Write([]byte(picture))
	return len(data), nil
}

func (w *watchedScreen) picture() string {
	var all bytes.Buffer
	for y := range w.emulator.Height() {
		var line strings.Builder
		for x := 0; x < w.emulator.Width(); x++ {
			if cell := w.emulator.CellAt(x, y); cell != nil && cell.Content != "" {
				line.WriteString(cell.Content)
			} else if cell == nil || cell.Width > 0 {
				line.WriteByte(' ')
			}
		}
		all.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return all.String()
}

// startOnScreen runs the program as a person would, in a terminal of a size that answers what it is asked.
func startOnScreen(t *testing.T, dir string, width, height int, args ...string) onScreen {
	t.Helper()
	return startOnScreenWith(t, "", dir, width, height, args...)
}

// startOnScreenWith is startOnScreen with a variable of the environment, NAME=value.
func startOnScreenWith(t *testing.T, variable, dir string, width, height int, args ...string) onScreen {
	t.Helper()
	person, tty := openTerminal(t)
	size := [4]uint16{uint16(height), uint16(width)}
	control(t, person, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Args[0] = "continuo"
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TERM=xterm-256color", "CONTINUO_STORE_PATH=" + filepath.Join(dir, "continuo.db"), variable}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	emulator := vt.NewSafeEmulator(width, height)
	seen := &watchedScreen{watched: *newWatched(), emulator: emulator, width: width}
	p := onScreen{&program{Cmd: cmd, t: t, stdout: &seen.watched, stderr: newWatched()}, person, emulator, seen}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close() // the program has it
	var seeing sync.WaitGroup
	seeing.Go(func() { _, _ = io.Copy(person, emulator) }) // the terminal's own answers
	seeing.Go(func() {
		_, _ = io.Copy(seen, person) // ends with an error when the program has left
		_ = emulator.Emulator.Close()
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		seeing.Wait()
	})
	return p
}

func (p onScreen) types(text string) {
	p.t.Helper()
	if _, err := p.person.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// resizes changes the size of the terminal, as a person does with a window.
func (p onScreen) resizes(width, height int) {
	p.t.Helper()
	p.emulator.Resize(width, height)
	size := [4]uint16{uint16(height), uint16(width)}
	control(p.t, p.person, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

// What is typed before a question is shown does not answer it. Whole lines, and one that was not finished yet, are the
// next messages.
func TestTypedAheadOnTheScreen(t *testing.T) {
	dir := t.TempDir()
	m := newHeldModel(t, dir)
	p := startOnScreen(t, dir, 90, 30, "chat", "s1")
	p.seen.wait(t, `\n›\n`)
	p.types("Look around.\r")
	m.gets("Look around.")
	p.types("y\r/status of it\ry")
	p.seen.wait(t, `next: y\n *next: /status of it\n(?s:.*)\n› y\n`)
	m.callsTool("first")
	p.seen.wait(t, `May this run\? fs\.list\(\{"path":"first"\}\)(?s:.*)begun before the question(?s:.*)\n› y\n`)
	p.types("\r") // ends what was started before
	p.seen.wait(t, `kept as your next message(?s:.*)next: y\n *next: /status of it\n *next: y\n(?s:.*)\n\?\n`)
	p.types("no, thanks\r")
	p.seen.wait(t, `not allowed: no, thanks`)
	m.gets("no, thanks")

	p.types("x")
	p.seen.wait(t, `\n› x\n`)
	m.callsTool("second")
	p.seen.wait(t, `May this run\?(?s:.*)"second"(?s:.*)\n› x\n`)
	p.types("\x15") // without what was started before, the next line is the answer
	p.seen.wait(t, `\n\?\n`)
	p.types("y\r")
	m.gets("")
	m.reply("Done.")

	m.gets("y")
	m.reply("What do you mean?")
	p.seen.wait(t, `What do you mean\?(?s:.*)there is no command /status`)
	m.gets("y")
	m.reply("Again?")
	p.seen.wait(t, `Again\?(?s:.*)\n›\n(?s:.*)billed|Again\?(?s:.*)next request: \d`)
	p.types("\x04")
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, p.seen)
	}
}

// Who waits for a request that is sent again is told why.
func TestARetryOnTheScreen(t *testing.T) {
	dir := t.TempDir()
	m := newHeldModel(t, dir)
	p := startOnScreen(t, dir, 80, 24, "chat", "s1")
	p.seen.wait(t, `\n›\n`)
	p.types("Hello.\r")
	m.gets("Hello.")
	m.reply(overloaded)
	p.seen.wait(t, `The request is sent again, since it failed:\s(?s:.*)503\s(?s:.*)overloaded\n`)
	m.gets("Hello.")
	m.reply("Here I am.")
	p.seen.wait(t, `Here I am\.`)
	p.types("\x04")
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, p.seen)
	}
}

// A chat from its begin to its end: an answer in Markdown, other sizes, a branch of it, and the terminal afterwards.
func TestChatOnTheScreen(t *testing.T) {
	dir := t.TempDir()
	m := newHeldModel(t, dir)
	makeFile(t, filepath.Join(dir, "notes.txt"), "the meeting is on Monday\n")
	p := startOnScreen(t, dir, 80, 24, "chat", "s1")
	p.seen.wait(t, `\n›\n`)
	p.types("\x1b[200~one\ntwo\x1b[201~ @notes.txt\r")
	m.gets("the meeting is on Monday")
	p.seen.wait(t, `› one\n  two @notes\.txt\n  \[notes\.txt · 1 line\]`)
	m.reply("# Heading\n\n- a **bold** point\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
	p.seen.wait(t, `Heading\n\n• a bold point\n\na │ b\n──┼──\n1 │ 2\n(?s:.*)next request: 2 of 2 messages`)
	p.resizes(30, 12)
	p.seen.wait(t, `\n─{30}\n›\n.*tokens?\n`)
	p.resizes(100, 30)
	p.seen.wait(t, `(?s:.*)• a bold point(?s:.*)\n─{100}\n›\n`)

	p.types("/retry\r")
	m.gets("the meeting is on Monday")
	m.reply("Another answer.")
	p.seen.wait(t, `Another answer\.(?s:.*)next request: 2 of 2`)
	p.types("/edit\r")
	p.seen.wait(t, `\n─{100}\n› one\n  two @notes\.txt\n`)
	p.types("\x03/open s1\r")
	p.seen.wait(t, `a bold point`)
	p.types("\x0f")
	p.seen.wait(t, `Open a conversation(?s:.*)Heading|Open a conversation(?s:.*)Another answer`)
	p.types("\x1b")
	p.seen.wait(t, `a bold point`)
	p.types("\x03")
	p.seen.wait(t, `Ctrl-C again leaves`)
	p.types("\x03")
	p.seen.wait(t, `Continue with: continuo chat s1`)
	if code := p.end(); code != 0 {
		t.Errorf("ended with %d:\n%s", code, p.seen)
	}
}

// isColoured reports whether anything in the picture has a colour.
func (p onScreen) isColoured() bool {
	for y := range p.emulator.Height() {
		for x := range p.emulator.Width() {
			if cell := p.emulator.CellAt(x, y); cell != nil && (cell.Style.Fg != nil || cell.Style.Bg != nil) {
				return true
			}
		}
	}
	return false
}

// With NO_COLOR, whatever its text, the screen and what it leaves on the terminal have no colours; without it they have.
func TestAScreenWithoutColours(t *testing.T) {
	for variable, want := range map[string]bool{"NO_COLOR=yes": false, "NO_COLOR=": true} {
		t.Run(variable, func(t *testing.T) {
			dir := t.TempDir()
			m := newHeldModel(t, dir)
			p := startOnScreenWith(t, variable, dir, 80, 24, "chat", "s1")
			p.seen.wait(t, `\n›\n`)
			p.types("hello\r")
			m.gets("hello")
			m.reply("# Heading\n\n```go\nfunc main() { return \"text\" } // done\n```\n")
			p.seen.wait(t, `Heading\n\n  func main(?s:.*)next request: 2 of 2 messages`)
			if got := p.isColoured(); got != want {
				t.Errorf("the screen has colours: %v, want %v", got, want)
			}
			p.types("\x03\x03")
			p.seen.wait(t, `Continue with: continuo chat s1`)
			if code := p.end(); code != 0 {
				t.Errorf("ended with %d:\n%s", code, p.seen)
			}
			if got := p.isColoured(); got != want {
				t.Errorf("what it leaves has colours: %v, want %v", got, want)
			}
		})
	}
}
