package chatscreen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// Screen is a screen on a terminal.
type Screen struct {
	model   *Model
	profile colorprofile.Profile // the colours of the terminal
	program *tea.Program
}

// NewScreen makes a screen of a terminal's files. Env is in the form of os.Environ.
func NewScreen(ctx context.Context, backend Backend, options Options, in, out *os.File, env []string) *Screen {
	model := New(ctx, backend, options)
	return &Screen{model, colorprofile.Env(env), tea.NewProgram(model, tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(env), tea.WithoutSignalHandler())}
}

// Run shows the screen until the person leaves. What was said in the meantime is then written to out, so that the
// terminal keeps it.
func (s *Screen) Run(out io.Writer) error {
	_, err := s.program.Run()
	if err != nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("the screen of the chat: %w", err)
	}
	coloured := &colorprofile.Writer{Forward: out, Profile: s.profile}
	_, err = coloured.WriteString(s.model.Transcript(max(s.model.width-1, 8)))
	return err
}

// Stop ends the turn that runs, and then the screen. It does not wait.
func (s *Screen) Stop(cause error) { s.program.Send(Stop{cause}) }

// Notes returns a writer whose lines the screen shows as notes; it is safe for concurrent use.
func (s *Screen) Notes() io.Writer { return &notes{screen: s} }

// notes cuts what is written into lines.
type notes struct {
	screen *Screen
	mu     sync.Mutex
	rest   []byte
}

// maxNote bounds a line, in bytes.
const maxNote = 4 << 10

// Write is part of io.Writer.
func (n *notes) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rest = append(n.rest, text...)
	for {
		line, rest, ok := bytes.Cut(n.rest, []byte("\n"))
		if !ok && len(n.rest) < maxNote {
			return len(text), nil
		}
		n.rest = rest
		n.screen.program.Send(Note(line))
	}
}
