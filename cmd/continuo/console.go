package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/secret"
)

// console is where a command reads and writes: results go to out, notes and progress to err.
type console struct {
	in       io.Reader
	out, err io.Writer
	// inTerminal, outTerminal and errTerminal say that a person is on the other side.
	inTerminal, outTerminal, errTerminal bool
	// paint colours what goes to out, notePaint what goes to err.
	paint, notePaint palette
	width            int              // of the terminal behind out in columns; 0 when it is no terminal
	secrets          *secret.Redactor // of what is written to err as errors and as log events
}

// checkedWriter remembers its first error, so that output that was lost is not taken for output.
type checkedWriter struct {
	file *os.File
	err  error
}

func (w *checkedWriter) Write(data []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.file.Write(data)
	w.err = err
	return n, err
}

// lost says that a part of the output could not be written; nil when all of it was.
func (c *console) lost() error {
	if w, ok := c.out.(*checkedWriter); ok && w.err != nil {
		return fmt.Errorf("write the output: %w", w.err)
	}
	return nil
}

// newConsole looks at the three files of a process. env is as os.Environ gives it.
func newConsole(in, out, errors *os.File, env []string) *console {
	c := &console{
		in: in, out: &checkedWriter{file: out}, err: errors,
		secrets: secret.FromEnv(env), inTerminal: isTerminal(in), outTerminal: isTerminal(out), errTerminal: isTerminal(errors),
	}
	colours := !hasValue(env, "NO_COLOR") && !slices.Contains(env, "TERM=dumb")
	c.paint, c.notePaint = palette(colours && c.outTerminal), palette(colours && c.errTerminal)
	c.measure()
	return c
}

// measure asks the terminal behind out for its width, which may change.
func (c *console) measure() {
	w, ok := c.out.(*checkedWriter)
	if !ok || !c.outTerminal {
		return
	}
	c.width = 80
	if width, _, err := term.GetSize(int(w.file.Fd())); err == nil && width > 0 {
		c.width = width
	}
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

func hasValue(env []string, name string) bool {
	return slices.ContainsFunc(env, func(variable string) bool {
		value, ok := strings.CutPrefix(variable, name+"=")
		return ok && value != ""
	})
}

// print writes a line of a result.
func (c *console) print(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format+"\n", args...) }

// note writes a line to the side channel.
func (c *console) note(format string, args ...any) { _, _ = fmt.Fprintf(c.err, format+"\n", args...) }

// text writes foreign text as it is, or, when a terminal would read it, without what could steer it.
func (c *console) text(text string) {
	if c.outTerminal {
		text = harmless(text)
	}
	_, _ = io.WriteString(c.out, text)
}

// palette paints text for terminals, or leaves it alone.
type palette bool

func (p palette) with(code, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p palette) bold(text string) string   { return p.with("1", text) }
func (p palette) dim(text string) string    { return p.with("2", text) }
func (p palette) red(text string) string    { return p.with("31", text) }
func (p palette) green(text string) string  { return p.with("32", text) }
func (p palette) yellow(text string) string { return p.with("33", text) }
func (p palette) cyan(text string) string   { return p.with("36", text) }

// json writes a value as indented JSON.
func (c *console) json(value any) error {
	data, err := rawjson.Marshal(value)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, data, "", "  "); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	pretty.WriteByte('\n')
	_, err = pretty.WriteTo(c.out)
	return err
}

// ask asks a question that is answered by y or yes; anything else is a no. Where nobody can answer it
// is an error.
func (c *console) ask(question string) (bool, error) {
	if !c.inTerminal || !c.errTerminal {
		return false, usage("%s There is no terminal to ask on: give --yes", question)
	}
	_, _ = fmt.Fprintf(c.err, "%s [y/N] ", question)
	line, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && line == "" {
		c.note("")
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}
