package chatscreen

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/continuo-log/continuo/internal/term"
)

// menu lists what can follow in the line.
type menu struct {
	items  []Completion
	chosen int // -1 while none was chosen
	line   string
	input  *composer
}

// completed are the completions of a line.
type completed struct {
	line  string
	items []Completion
	tab   bool
}

// menuLines is how many completions are shown.
const menuLines = 6

// complete looks for completions of commands and files while they are typed.
func (m *Model) complete() tea.Cmd {
	before, _ := m.input.aroundCursor()
	if !Completes(before) || m.question() != nil {
		m.closeMenu()
		return nil
	}
	return m.completions(before, false)
}

// Completes reports whether a text ends with the beginning of a command or of a file's name.
func Completes(before string) bool {
	if isCommand(before) && !strings.Contains(before, "\n") {
		return true
	}
	word := before[strings.LastIndexAny(before, " \n")+1:]
	return strings.HasPrefix(word, "@") && len(word) > 1
}

func (m *Model) completions(before string, tab bool) tea.Cmd {
	ctx, backend := m.ctx, m.backend
	return func() tea.Msg { return completed{before, backend.Complete(ctx, before), tab} }
}

// tab completes the line: with the chosen completion, or the only one.
func (m *Model) tab() tea.Cmd {
	before, _ := m.input.aroundCursor()
	if len(m.menu.items) == 0 || m.menu.line != before {
		if !Completes(before) {
			return nil
		}
		return m.completions(before, true)
	}
	m.menu.accept()
	return m.complete()
}

func (m *Model) closeMenu() { m.menu = menu{input: &m.input} }

// take shows completions, if the line is still the one that they are for.
func (n *menu) take(msg completed) {
	before, _ := n.input.aroundCursor()
	if before != msg.line {
		return
	}
	n.items, n.line, n.chosen = msg.items, msg.line, -1
	if msg.tab {
		n.accept()
	}
}

// accept puts the chosen completion into the line, or as much as all have in common.
func (n *menu) accept() {
	if len(n.items) == 0 {
		return
	}
	text := n.items[max(n.chosen, 0)].Text
	if n.chosen < 0 {
		text = Common(n.items)
		if len(text) <= len(n.line) && len(n.items) > 1 { // nothing in common: the first
			n.chosen = 0
			return
		}
	}
	_, after := n.input.aroundCursor()
	n.input.area.SetValue(text + after)
	n.input.moveBack(after)
	n.line = text
	n.chosen = -1
}

// Common is the line as far as all completions agree; "" for none.
func Common(items []Completion) (text string) {
	for i, item := range items {
		if i == 0 {
			text = item.Text
		}
		text = commonBeginning(text, item.Text)
	}
	return text
}

func commonBeginning(a, b string) string {
	for i, r := range a {
		if !strings.HasPrefix(b[min(i, len(b)):], string(r)) {
			return a[:i]
		}
	}
	return a
}

// moveBack moves the cursor before a text at the end of the value.
func (c *composer) moveBack(after string) {
	if after == "" {
		return
	}
	head := strings.TrimSuffix(c.area.Value(), after)
	c.moveTo(strings.Count(head, "\n"), len([]rune(head[strings.LastIndexByte(head, '\n')+1:])))
}

// key takes the keys that choose in an open list.
func (n *menu) key(name string) bool {
	if len(n.items) == 0 {
		return false
	}
	switch name {
	case "up":
		n.chosen = max(n.chosen-1, -1)
	case "down":
		n.chosen = min(n.chosen+1, len(n.items)-1)
	case "enter":
		if n.chosen < 0 {
			return false
		}
		n.accept()
		n.items = nil
	default:
		return false
	}
	return true
}

// lines draw the list.
func (n *menu) lines(width int) []string {
	var lines []string
	first := max(0, min(n.chosen-menuLines+1, len(n.items)-menuLines))
	labels := 0
	for i := first; i < min(first+menuLines, len(n.items)); i++ {
		labels = max(labels, term.Width(n.items[i].Label))
	}
	for i := first; i < min(first+menuLines, len(n.items)); i++ {
		mark, label := "  ", n.items[i].Label
		if i == n.chosen {
			mark, label = paint.Cyan("› "), paint.Bold(label)
		}
		lines = append(lines, term.Fit(mark+term.Pad(label, min(labels, width/2))+"  "+paint.Dim(n.items[i].Help), width))
	}
	if more := len(n.items) - first - menuLines; more > 0 {
		lines = append(lines, paint.Dim(term.Fit(fmt.Sprintf("  %d more", more), width)))
	}
	return lines
}
