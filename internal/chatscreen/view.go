package chatscreen

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/continuo-log/continuo/internal/term"
)

// layout fits the composer to the screen.
func (m *Model) layout() {
	m.input.resize(m.width-2, min(10, max(m.height/3, 1)))
}

// View is part of tea.Model: a line about the conversation, the transcript or a list, what waits, the composer, and what
// the next request holds. The lower parts are drawn whole where the screen has room for them.
func (m *Model) View() tea.View {
	lower, cursorLine := m.lower()
	var upper []string
	if m.height-len(lower) >= 6 {
		upper = append(upper, m.header())
	}
	room := max(m.height-len(lower)-len(upper), 0)
	if m.picker != nil {
		upper = append(upper, filled(m.pickerLines(m.width, room), room)...)
	} else {
		upper = append(upper, m.transcript(room)...)
	}
	lines := append(upper, lower...)
	top := max(len(lines)-m.height, 0)
	for i, line := range lines {
		lines[i] = term.Fit(line, m.width)
	}
	view := tea.NewView(strings.Join(lines[top:], "\n"))
	view.AltScreen = true
	view.WindowTitle = "continuo chat"
	if title := m.title(); title != "" {
		view.WindowTitle = title + " · continuo"
	}
	if !m.noMouse {
		view.MouseMode = tea.MouseModeCellMotion
	}
	if cursor := m.input.area.Cursor(); cursor != nil && m.picker == nil {
		cursor.X, cursor.Y = min(cursor.X+2, m.width-1), cursor.Y+len(upper)+cursorLine-top
		view.Cursor = cursor
	}
	return view
}

// filled are exactly so many lines.
func filled(lines []string, room int) []string {
	for len(lines) < room {
		lines = append(lines, "")
	}
	return lines[:room]
}

func (m *Model) title() string {
	if title := term.OneLine(m.state.Title, 200); title != "" {
		return title
	}
	return term.OneLine(m.state.Name, 200)
}

// header is the line about the conversation.
func (m *Model) header() string {
	title := m.title()
	if title == "" {
		title = "New conversation"
	}
	facts := []string{term.OneLine(m.state.Model, 60)}
	if m.state.Mode != "" {
		facts = append(facts, strings.TrimSpace(m.state.Mode+" "+term.OneLine(m.state.Agent, 30)))
	}
	if m.state.View != "" {
		facts = append(facts, "view "+m.state.View)
	}
	right := ""
	for i := len(facts); i > 0; i-- {
		if right = strings.Join(facts[:i], " · "); term.Width(right) <= m.width/2 {
			break
		}
		right = ""
	}
	title = term.Fit(title, max(m.width-term.Width(right)-3, 1))
	gap := strings.Repeat(" ", max(m.width-term.Width(title)-term.Width(right)-1, 0))
	return paint.Bold(title) + gap + paint.Dim(right)
}

// lower are the lines below the transcript, and the number of those above the composer.
func (m *Model) lower() (lines []string, cursorLine int) {
	width := m.width
	lines = append(lines, m.waiting()...)
	if m.picker == nil {
		lines = append(lines, m.questionLines(width, max(m.height/2, 3))...)
		lines = append(lines, m.menu.lines(width)...)
	}
	if m.height > 4 {
		lines = append(lines, m.border())
	}
	cursorLine = len(lines)
	sign := paint.Cyan("› ")
	if m.answers() {
		sign = paint.Yellow("? ")
	}
	for i, line := range strings.Split(m.input.area.View(), "\n") {
		if i == 0 {
			line = sign + line
		} else {
			line = "  " + line
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if m.height > 3 {
		lines = append(lines, m.footer()...)
	}
	return lines, cursorLine
}

// maxWaiting is how many of the lines that wait are shown.
const maxWaiting = 3

// waiting are the lines that wait, and what runs.
func (m *Model) waiting() (lines []string) {
	for i, line := range m.queue {
		if i == maxWaiting {
			lines = append(lines, paint.Dim("  "+term.Count(len(m.queue)-i, "more line")))
			break
		}
		lines = append(lines, paint.Dim(term.Fit("  next: "+term.OneLine(line, m.width), m.width)))
	}
	if m.running == nil || m.question() != nil && m.picker == nil {
		return lines
	}
	seconds := int(time.Since(m.running.began).Seconds())
	words := fmt.Sprintf("%s · %d s · Ctrl-C stops", m.running.phase, seconds)
	return append(lines, paint.Cyan(frames[m.frame%len(frames)])+" "+paint.Dim(term.Fit(words, max(m.width-2, 1))))
}

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// border is the line above the composer, with the mode in it.
func (m *Model) border() string {
	label := m.state.Mode
	if m.state.Agent != "" {
		label = strings.TrimSpace(label + " " + term.OneLine(m.state.Agent, 24))
	}
	if label != "" {
		label = " " + term.Fit(label, max(m.width-6, 1)) + " "
	}
	return paint.Dim("─" + label + strings.Repeat("─", max(m.width-1-term.Width(label), 0)))
}

// footer says what the next request holds and what the conversation has cost, as far as there is room.
func (m *Model) footer() []string {
	if m.notice != "" {
		return []string{paint.Yellow(term.Fit(m.notice, m.width))}
	}
	next, billed := m.nextParts(), m.billedParts()
	if m.width < narrow || m.height < 16 {
		parts := next[len(next)-1:]
		if len(next) > 1 {
			parts = next[1:2] // the tokens say more than the messages
		}
		if m.figures.Cost != "" {
			parts = append(parts[:len(parts):len(parts)], m.figures.Cost)
		}
		return []string{paint.Dim(fitParts("", parts, m.width))}
	}
	lines := []string{paint.Dim(fitParts("next request: ", next, m.width))}
	help := "/help"
	if len(billed) == 0 {
		return append(lines, paint.Dim(help))
	}
	return append(lines, paint.Dim(fitParts("billed: ", append(billed, help), m.width)))
}

// fitParts joins as many parts as fit.
func fitParts(label string, parts []string, width int) string {
	line := label
	for i, part := range parts {
		if i > 0 {
			part = " · " + part
		}
		if term.Width(line+part) > width {
			break
		}
		line += part
	}
	if line == label && len(parts) > 0 {
		return term.Fit(parts[0], width)
	}
	return line
}

// nextParts describe the next request.
func (m *Model) nextParts() []string {
	f := m.figures
	if f.Messages == 0 && f.Tokens == 0 {
		return []string{"your message"}
	}
	parts := []string{
		fmt.Sprintf("%s of %s", term.Number(f.Shown), term.Count(f.Messages, "message")),
		term.OfLimit(f.Tokens, f.TokenLimit, "token"),
	}
	if f.PromptTokens > 0 {
		parts = append(parts, "+ "+term.Number(f.PromptTokens)+" system prompt, tools")
	}
	return parts
}

// billedParts describe what the conversation has used.
func (m *Model) billedParts() []string {
	f := m.figures
	if f.Input+f.Output == 0 {
		return nil
	}
	parts := []string{inputText(f.Input, f.Cached), "out " + term.Number(f.Output)}
	if f.Cost != "" {
		parts = append(parts, f.Cost)
	}
	return parts
}
