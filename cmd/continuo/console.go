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

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/secret"
	"github.com/continuo-log/continuo/internal/term"
)

// console is the input and output of a command: results go to out, notes and progress to err.
type console struct {
	in       io.Reader
	out, err io.Writer
	// inTerminal, outTerminal and errTerminal say that the file is a terminal.
	inTerminal, outTerminal, errTerminal bool
	isDumb                               bool // TERM=dumb: the terminal cannot draw
	// paint colours what goes to out, notePaint what goes to err.
	paint, notePaint term.Style
	width            int              // of the terminal at out, in columns; 0 if it is no terminal
	secrets          *secret.Redactor // removes secrets from errors and log events on err
}

// checkedWriter keeps its first error, so that lost output is reported.
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

// lost returns an error if a part of the output could not be written.
func (c *console) lost() error {
	if w, ok := c.out.(*checkedWriter); ok && w.err != nil {
		return fmt.Errorf("write the output: %w", w.err)
	}
	return nil
}

// newConsole inspects the three files of a process. env is in the form of os.Environ.
func newConsole(in, out, errors *os.File, env []string) *console {
	c := &console{
		in: in, out: &checkedWriter{file: out}, err: errors,
		secrets: secret.FromEnv(env), inTerminal: term.IsTerminal(in), outTerminal: term.IsTerminal(out), errTerminal: term.IsTerminal(errors),
	}
	c.isDumb = slices.Contains(env, "TERM=dumb")
	colours := !hasValue(env, "NO_COLOR") && !c.isDumb
	c.paint, c.notePaint = term.Style(colours && c.outTerminal), term.Style(colours && c.errTerminal)
	c.measure()
	return c
}

// measure reads the width of the terminal at out, which may change.
func (c *console) measure() {
	w, ok := c.out.(*checkedWriter)
	if !ok || !c.outTerminal {
		return
	}
	c.width, _ = term.Dimensions(w.file)
}

func hasValue(env []string, name string) bool {
	return slices.ContainsFunc(env, func(variable string) bool {
		value, ok := strings.CutPrefix(variable, name+"=")
		return ok && value != ""
	})
}

// print writes a line of a result.
func (c *console) print(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format+"\n", args...) }

// note writes a line to standard error, in a terminal wrapped between words.
func (c *console) note(format string, args ...any) {
	w := term.Wrapper{Out: c.err}
	if _, isFile := c.err.(*os.File); isFile && c.errTerminal {
		w.Width, _ = c.errSize()
	}
	w.Write(fmt.Sprintf(format, args...))
	w.Flush()
	w.Write("\n")
}

// text writes foreign text unchanged, or, to a terminal, without what could control it.
func (c *console) text(text string) {
	if c.outTerminal {
		text = term.Clean(text)
	}
	_, _ = io.WriteString(c.out, text)
}

// table begins a table for [console.printTable]; [term.NewTable] explains the headings.
func (c *console) table(headings ...string) *term.Table { return term.NewTable(c.paint, headings...) }

// printTable writes a table; its last column is truncated to the width, 0 truncates nothing.
func (c *console) printTable(t *term.Table, width int) { c.printLines(t.Lines(width)) }

func (c *console) printLines(lines []string) {
	for _, line := range lines {
		c.print("%s", line)
	}
}

// newProgress shows a bar on standard error if that is a terminal; label names the work.
func (c *console) newProgress(label string) *term.Progress {
	if !c.errTerminal {
		return term.NewProgress(nil, nil, label)
	}
	return term.NewProgress(&term.Screen{Out: c.err}, func() int { width, _ := c.errSize(); return width }, label)
}

// errSize returns the size of the terminal at err, in columns and lines.
func (c *console) errSize() (width, height int) {
	file, _ := c.err.(*os.File)
	return term.Dimensions(file)
}

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

// ask asks a question; y or yes means yes, anything else no. It fails if there is no terminal to answer.
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
