package chatscreen

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/continuo-log/continuo/internal/term"
)

// picker is a list over the transcript, from which the person chooses a conversation or an earlier message.
type picker struct {
	title   string
	words   string
	items   []item
	chosen  int
	loading bool
	// search finds the items for words; choose takes the chosen one.
	search func(words string) tea.Cmd
	choose func(item) tea.Cmd
}

// item is a line of a picker.
type item struct {
	id    string
	text  string // whole, of an earlier message
	title string // shown first
	facts string // beside the title, with styles
	line  string // below them
}

// minTitle is how many cells a title has, however long its facts are.
const minTitle = 20

// found are the items for words.
type found struct {
	*picker
	words string
	items []item
	err   error
}

func (m *Model) openPicker(p *picker, words string) tea.Cmd {
	p.words, p.loading = words, true
	m.picker = p
	return p.search(words)
}

// pickConversation lists conversations.
func (m *Model) pickConversation(words string) tea.Cmd {
	p := &picker{title: "Open a conversation"}
	ctx, backend := m.ctx, m.backend
	p.search = func(words string) tea.Cmd {
		return func() tea.Msg {
			choices, err := backend.Conversations(ctx, words)
			items := make([]item, len(choices))
			for i, choice := range choices {
				items[i] = item{id: choice.ID, title: choice.title(), facts: choice.facts(), line: term.OneLine(choice.Last, 200)}
			}
			return found{p, words, items, err}
		}
	}
	p.choose = func(chosen item) tea.Cmd { return m.open(chosen.id) }
	return m.openPicker(p, words)
}

func (c *Choice) title() string { return term.OneLine(cmp.Or(c.Title, c.Name), 60) }

// facts say which conversation it is, and how old.
func (c *Choice) facts() string {
	facts := []string{""}
	if c.Name != "" && c.Name != c.ID && c.Name != cmp.Or(c.Title, c.Name) {
		facts = append(facts, term.OneLine(c.Name, 24))
	}
	if c.Entries > 0 {
		facts = append(facts, term.Count(c.Entries, "entry"))
	}
	if !c.UpdatedAt.IsZero() {
		facts = append(facts, age(time.Since(c.UpdatedAt)))
	}
	text := paint.Dim(strings.Join(facts, " · "))
	if c.State != "" && c.State != "idle" {
		text += paint.Dim(" · ") + paint.Yellow(c.State)
	}
	return text
}

// age says how long ago something was.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
}

// pickHistory lists what the person said before.
func (m *Model) pickHistory() tea.Cmd {
	p := &picker{title: "Earlier messages"}
	p.search = func(words string) tea.Cmd {
		var items []item
		for _, text := range m.input.past {
			if matches(text, words) {
				items = append(items, item{text: text, line: term.OneLine(text, 400)})
			}
		}
		return func() tea.Msg { return found{p, words, items, nil} }
	}
	p.choose = func(chosen item) tea.Cmd {
		m.typed(func() { m.input.set(chosen.text) })
		return nil
	}
	return m.openPicker(p, m.input.area.Value())
}

// matches reports whether a text has all words, in any case.
func matches(text, words string) bool {
	text = strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// pick takes a key while the picker is open.
func (m *Model) pick(msg tea.KeyPressMsg) tea.Cmd {
	p := m.picker
	switch msg.Keystroke() {
	case "esc", "ctrl+c", "ctrl+d":
		m.picker = nil
		return m.show()
	case "enter":
		m.picker = nil
		asks := m.show()
		if p.chosen < len(p.items) {
			return tea.Batch(asks, p.choose(p.items[p.chosen]))
		}
		return asks
	case "up", "ctrl+p", "shift+tab":
		p.chosen = max(p.chosen-1, 0)
		return nil
	case "down", "ctrl+n", "tab", "ctrl+r":
		p.chosen = max(min(p.chosen+1, len(p.items)-1), 0)
		return nil
	case "pgup":
		p.chosen = max(p.chosen-10, 0)
		return nil
	case "pgdown":
		p.chosen = max(min(p.chosen+10, len(p.items)-1), 0)
		return nil
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(p.words)
		p.words = p.words[:len(p.words)-size]
	case "ctrl+u", "ctrl+w":
		p.words = ""
	default:
		if msg.Text == "" {
			return nil
		}
		p.words += msg.Text
	}
	p.loading = true
	return p.search(p.words)
}

// pickerLines draw the list in a room of lines.
func (m *Model) pickerLines(width, room int) []string {
	p := m.picker
	lines := []string{
		term.Fit(paint.Bold(p.title)+paint.Dim(" · type to search · Enter chooses · Esc closes"), width),
		term.Fit(paint.Cyan("⌕ ")+p.words+paint.Dim("▏"), width),
		"",
	}
	each := 1
	if len(p.items) > 0 && p.items[0].title != "" {
		each = 2
	}
	most := max((room-len(lines))/each, 1)
	first := max(0, min(p.chosen-most/2, len(p.items)-most))
	for i := first; i < min(first+most, len(p.items)); i++ {
		lines = append(lines, p.itemLines(i, width, each)...)
	}
	if len(p.items) == 0 {
		words := "Nothing matches."
		if p.loading {
			words = "…"
		}
		lines = append(lines, paint.Dim(words))
	}
	return lines[:min(len(lines), room)]
}

func (p *picker) itemLines(i, width, each int) []string {
	one, mark, indent := p.items[i], "  ", "    "
	if i == p.chosen {
		mark = paint.Cyan("› ")
	}
	if each == 1 {
		line := term.Fit(one.line, width-2)
		if i == p.chosen {
			line = paint.Bold(line)
		}
		return []string{mark + line}
	}
	title := term.Fit(one.title, max(width-2-term.Width(one.facts), minTitle))
	return []string{mark + term.Fit(paint.Bold(title)+one.facts, width-2), indent + paint.Dim(term.Fit(one.line, max(width-4, 1)))}
}
