package chatscreen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// key takes a key.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	m.notice = ""
	name := msg.Keystroke()
	if m.picker != nil {
		return m.pick(msg)
	}
	if name == "ctrl+c" {
		return m.interrupt()
	}
	m.warned = false
	if cmd, done := m.screenKey(name); done {
		return cmd
	}
	if m.menu.key(name) {
		return nil
	}
	switch name {
	case "enter":
		return m.enter()
	case "tab":
		return m.tab()
	case "up":
		if m.input.isEmpty() && len(m.queue) > 0 { // the newest line that waits is edited again
			m.typed(func() { m.input.set(m.queue[len(m.queue)-1]) })
			m.queue = m.queue[:len(m.queue)-1]
			return nil
		}
	case "ctrl+d":
		if m.input.isEmpty() {
			return m.leave()
		}
	}
	m.typed(func() { m.input.update(msg) })
	return m.complete()
}

// screenKey takes the keys that do not edit the line.
func (m *Model) screenKey(name string) (tea.Cmd, bool) {
	page := max(m.height-8, 1)
	switch name {
	case "pgup":
		m.scroll += page
	case "pgdown":
		m.scroll = max(m.scroll-page, 0)
	case "shift+up":
		m.scroll++
	case "shift+down":
		m.scroll = max(m.scroll-1, 0)
	case "ctrl+home":
		m.scroll = 1 << 30
	case "ctrl+end":
		m.scroll = 0
	case "ctrl+t":
		m.details = !m.details
	case "ctrl+l":
		return tea.ClearScreen, true
	case "ctrl+r":
		return m.pickHistory(), true
	case "ctrl+o":
		return m.send("/open"), true
	case "ctrl+g":
		return m.edit(), true
	case "ctrl+z":
		return tea.Suspend, true
	case "f2":
		m.noMouse = !m.noMouse
		m.notice = "The mouse scrolls again."
		if m.noMouse {
			m.notice = "The mouse selects text, as without Continuo. F2 takes it back."
		}
	case "esc":
		m.closeMenu()
	default:
		return nil, false
	}
	return nil, true
}

// typed changes the line. A line that becomes empty is begun again by the next key.
func (m *Model) typed(change func()) {
	change()
	if q := m.question(); q != nil {
		m.early = (m.early || q.waiting > 0) && !m.input.isEmpty()
	}
}

func (m *Model) paste(text string) tea.Cmd {
	m.notice, m.warned = "", false
	if m.picker != nil {
		m.picker.words += firstLine(text)
		return m.picker.search(m.picker.words)
	}
	if name := imageName(text); name != "" {
		text = Mention(name)
	}
	m.typed(func() { m.input.paste(text) })
	return m.complete()
}

// imageName is the path of an image, as terminals paste it when a file is dropped on them.
func imageName(text string) string {
	name := strings.Trim(strings.TrimSpace(text), `'"`)
	if strings.ContainsAny(name, "\n") || MediaType(name) == "" || !filepath.IsAbs(name) {
		return ""
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return name
}

// interrupt is Ctrl-C: it clears the line, then stops the answer, then leaves.
func (m *Model) interrupt() tea.Cmd {
	switch {
	case !m.input.isEmpty():
		m.input.clear()
		m.closeMenu()
		m.early = false
		m.notice = "The line is in the history: ↑ brings it back."
	case m.running != nil && !m.running.stopping:
		m.running.stopping = true
		m.running.phase = "stopping"
		m.running.cancel(nil)
		m.questions = nil
		if len(m.queue) > 0 {
			m.input.set(strings.Join(m.queue, "\n"))
			m.queue = nil
		}
	case m.running == nil && m.warned:
		return tea.Quit
	case m.running == nil:
		m.warned = true
		m.notice = "Ctrl-C again leaves."
	}
	return nil
}

// leave leaves, at the end of the turn.
func (m *Model) leave() tea.Cmd {
	if m.running == nil {
		return tea.Quit
	}
	m.leaving = true
	m.notice = "Leaves at the end of this answer; Ctrl-C stops it."
	return nil
}

// enter sends the line, or answers the question with it.
func (m *Model) enter() tea.Cmd {
	if before, ok := strings.CutSuffix(m.input.area.Value(), `\`); ok && m.input.onLastRow() {
		m.input.area.SetValue(before + "\n")
		return nil
	}
	line := m.input.text()
	m.closeMenu()
	if strings.TrimSpace(line) == "" {
		return nil
	}
	if m.answers() {
		m.input.empty()
		return m.answer(line)
	}
	m.input.clear()
	m.early = false
	if m.question() != nil {
		m.addNote("Typed before the question: kept as your next message, not taken as the answer.")
		m.queue = append(m.queue, line)
		return nil
	}
	return m.send(line)
}

// edit opens an external editor with the line.
func (m *Model) edit() tea.Cmd {
	words := strings.Fields(m.options.Editor)
	if len(words) == 0 {
		m.notice = "Set EDITOR to write in an editor."
		return nil
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		m.report(fmt.Errorf("the editor: there is no program %s", words[0]))
		return nil
	}
	file, err := os.CreateTemp("", "continuo-*.md")
	if err == nil {
		_, err = file.WriteString(m.input.text())
		err = firstError(err, file.Close())
	}
	if err != nil {
		m.report(fmt.Errorf("open the editor: %w", err))
		return nil
	}
	command := exec.CommandContext(m.ctx, words[0], append(words[1:], file.Name())...) //nolint:gosec // the person's own editor
	return tea.ExecProcess(command, func(err error) tea.Msg {
		defer os.Remove(file.Name()) //nolint:errcheck // a file of the system's folder for such
		text, readErr := os.ReadFile(file.Name())
		if err = firstError(err, readErr); err != nil {
			return edited{err: fmt.Errorf("the editor: %w", err)}
		}
		return edited{text: strings.TrimRight(string(text), "\n")}
	})
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// wheelLines is how far the wheel of a mouse scrolls.
const wheelLines = 3

func (m *Model) wheel(msg tea.MouseWheelMsg) {
	switch msg.Button {
	case tea.MouseWheelUp:
		m.scroll += wheelLines
	case tea.MouseWheelDown:
		m.scroll = max(m.scroll-wheelLines, 0)
	}
}
