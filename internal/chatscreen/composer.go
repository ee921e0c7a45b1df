package chatscreen

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// composer is where the person writes: several lines, with a history.
type composer struct {
	area   textarea.Model
	pastes []paste  // long texts, of which the composer shows a mark only
	past   []string // the newest first
	at     int      // of past, while the person looks there; -1 at the draft
	draft  string
}

// paste is a long pasted text and what is shown for it.
type paste struct{ mark, text string }

// The least size of a pasted text for which only a mark is shown.
const (
	longPasteLines = 10
	longPasteBytes = 2000
)

// maxRows is how many rows of text can be typed.
const maxRows = 10_000

func newComposer() composer {
	area := textarea.New()
	area.Prompt, area.ShowLineNumbers, area.EndOfBufferCharacter = "", false, ' '
	area.CharLimit, area.MaxWidth = 0, 0
	area.DynamicHeight, area.MaxContentHeight = true, maxRows
	area.SetVirtualCursor(false)
	area.SetStyles(plainStyles())
	keys := textarea.DefaultKeyMap()
	keys.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j", "ctrl+enter"))
	keys.LineNext, keys.LinePrevious = key.NewBinding(key.WithKeys("down")), key.NewBinding(key.WithKeys("up"))
	for _, unused := range []*key.Binding{
		&keys.Paste, &keys.PageUp, &keys.PageDown, &keys.TransposeCharacterBackward, &keys.SelectAll, &keys.CopySelection,
		&keys.SelectLineUp, &keys.SelectLineDown, &keys.SelectWordForward, &keys.SelectWordBackward, &keys.SelectCharacterForward, &keys.SelectCharacterBackward,
	} {
		*unused = key.NewBinding()
	}
	area.KeyMap = keys
	area.Focus()
	return composer{area: area, at: -1}
}

func plainStyles() textarea.Styles {
	style := textarea.DefaultDarkStyles()
	none := lipgloss.NewStyle()
	state := textarea.StyleState{Base: none, Text: none, LineNumber: none, CursorLineNumber: none, CursorLine: none, EndOfBuffer: none, Placeholder: none.Faint(true), Prompt: none, Selection: none.Reverse(true)}
	style.Focused, style.Blurred = state, state
	style.Cursor.Blink = false
	return style
}

// resize fits the composer to a width, and to its text up to a height.
func (c *composer) resize(width, most int) {
	c.area.MaxHeight = max(most, 1)
	c.area.SetWidth(max(width, 4))
}

func (c *composer) isEmpty() bool { return c.area.Value() == "" }

// text is the whole text, pasted texts included.
func (c *composer) text() string {
	text := c.area.Value()
	for _, p := range c.pastes {
		text = strings.Replace(text, p.mark, p.text, 1)
	}
	return text
}

// set replaces the text; the cursor is at its end.
func (c *composer) set(text string) {
	c.area.SetValue("")
	c.pastes = nil
	if isLong(text) {
		c.paste(text)
		return
	}
	c.area.SetValue(text)
}

// clear empties the composer; what was in it is the newest of the history.
func (c *composer) clear() {
	c.remember(c.text())
	c.empty()
}

// empty empties the composer; what was in it is forgotten.
func (c *composer) empty() {
	c.area.SetValue("")
	c.pastes, c.at, c.draft = nil, -1, ""
}

// remember makes a text the newest of the history, which has each text once.
func (c *composer) remember(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	others := slices.DeleteFunc(slices.Clone(c.past), func(past string) bool { return past == text })
	c.past = append([]string{text}, others...)
}

// addPast adds earlier messages, the newest first, behind those of this session.
func (c *composer) addPast(texts []string) {
	seen := map[string]bool{}
	for _, text := range c.past {
		seen[text] = true
	}
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			c.past = append(c.past, text)
		}
	}
}

func isLong(text string) bool {
	return len(text) > longPasteBytes || strings.Count(text, "\n") >= longPasteLines || strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n'
	})
}

// paste inserts a text as it is: a long one, or one that the composer would change, as a mark.
func (c *composer) paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if !isLong(text) {
		c.area.InsertString(text)
		return
	}
	mark := fmt.Sprintf("[pasted %d: %d lines, %d characters]", len(c.pastes)+1, strings.Count(text, "\n")+1, len([]rune(text)))
	c.pastes = append(c.pastes, paste{mark, text})
	c.area.InsertString(mark)
}

// update takes a key that is not the screen's.
func (c *composer) update(msg tea.KeyPressMsg) {
	switch msg.Keystroke() {
	case "backspace", "ctrl+h":
		if c.removeMark() {
			return
		}
	case "up":
		if c.onFirstRow() {
			c.older()
			return
		}
	case "down":
		if c.onLastRow() {
			c.newer()
			return
		}
	case "ctrl+p":
		c.older()
		return
	case "ctrl+n":
		c.newer()
		return
	}
	c.area, _ = c.area.Update(msg)
}

// removeMark removes the mark of a pasted text before the cursor as a whole.
func (c *composer) removeMark() bool {
	before, after := c.aroundCursor()
	for i, p := range c.pastes {
		if head, ok := strings.CutSuffix(before, p.mark); ok {
			c.pastes = append(c.pastes[:i:i], c.pastes[i+1:]...)
			c.area.SetValue(head)
			c.area.InsertString("")
			line, column := c.area.Line(), c.area.Column()
			c.area.SetValue(head + after)
			c.moveTo(line, column)
			return true
		}
	}
	return false
}

// aroundCursor is the text before and behind the cursor.
func (c *composer) aroundCursor() (before, after string) {
	lines := strings.Split(c.area.Value(), "\n")
	row := min(c.area.Line(), len(lines)-1)
	line := []rune(lines[row])
	column := min(c.area.Column(), len(line))
	before = strings.Join(append(lines[:row:row], string(line[:column])), "\n")
	after = strings.Join(append([]string{string(line[column:])}, lines[row+1:]...), "\n")
	return before, after
}

func (c *composer) moveTo(line, column int) {
	for c.area.Line() > line {
		c.area.CursorUp()
	}
	c.area.SetCursorColumn(column)
}

func (c *composer) onFirstRow() bool { return c.area.Line() == 0 && c.area.LineInfo().RowOffset == 0 }

func (c *composer) onLastRow() bool {
	info := c.area.LineInfo()
	return c.area.Line() == c.area.LineCount()-1 && info.RowOffset >= info.Height-1
}

// older and newer go through the history.
func (c *composer) older() {
	if c.at+1 >= len(c.past) {
		return
	}
	if c.at < 0 {
		c.draft = c.text()
	}
	c.at++
	c.set(c.past[c.at])
}

func (c *composer) newer() {
	if c.at < 0 {
		return
	}
	c.at--
	if c.at < 0 {
		c.set(c.draft)
		return
	}
	c.set(c.past[c.at])
}
