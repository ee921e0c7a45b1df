package chatscreen

import (
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/term"
)

// place is what the transcript showed first, where the person has scrolled back. It stays there while text arrives below
// it, and when the terminal changes its size.
type place struct {
	block   *block
	line    int // of the block's, counted from 0; the empty line below them is one, too
	lines   int // of the block
	width   int
	details bool
	scroll  int // the value of Model.scroll; another one says that the person has scrolled since
}

// transcript is the part of the conversation that is shown.
func (m *Model) transcript(room int) []string {
	var lines []string
	starts := make([]int, len(m.blocks))
	width := max(m.width-1, 8)
	for i, b := range m.blocks {
		if i > 0 && !joins(m.blocks[i-1], b) {
			lines = append(lines, "")
		}
		starts[i] = len(lines)
		lines = append(lines, b.rendered(width, m.details)...)
	}
	if top, ok := m.keptTop(starts); ok {
		m.scroll = max(len(lines)-room-top, 0)
	}
	m.scroll = min(m.scroll, max(len(lines)-room, 0))
	end := len(lines) - m.scroll
	top := max(end-room, 0)
	m.keepTop(starts, top)
	shown := slices.Clone(lines[top:end])
	if m.scroll > 0 && room > 1 {
		shown[len(shown)-1] = paint.Dim(term.Fit("── "+term.Count(m.scroll+1, "line")+" below · PgDn · Ctrl-End", m.width))
	}
	return filled(shown, room)
}

// keepTop notes the line that is shown first.
func (m *Model) keepTop(starts []int, top int) {
	m.top = place{}
	if m.scroll == 0 {
		return
	}
	after, _ := slices.BinarySearch(starts, top+1)
	i := max(after-1, 0)
	b := m.blocks[i]
	m.top = place{block: b, line: top - starts[i], lines: len(b.lines), width: m.width, details: m.details, scroll: m.scroll}
}

// keptTop is where the line is now that was shown first; false where the person has scrolled since.
func (m *Model) keptTop(starts []int) (int, bool) {
	i := slices.Index(m.blocks, m.top.block)
	if m.top.block == nil || i < 0 || m.scroll != m.top.scroll {
		return 0, false
	}
	line, lines := m.top.line, len(m.blocks[i].lines)
	if m.width != m.top.width || m.details != m.top.details { // about the same part of the text
		line = line * lines / max(m.top.lines, 1)
	}
	return starts[i] + min(line, lines), true
}

// joins reports whether a block is shown directly below another.
func joins(above, below *block) bool {
	switch {
	case above.kind == called && below.kind == called, above.kind == note && below.kind == note:
		return true
	case above.kind == command && below.kind == aside:
		return true
	}
	return false
}

// Transcript is what was said while the screen was open, for the terminal's own history.
func (m *Model) Transcript(width int) string {
	var all strings.Builder
	for i, b := range m.blocks {
		if !b.fresh || b.kind == aside {
			continue
		}
		if all.Len() > 0 && i > 0 && !joins(m.blocks[i-1], b) {
			all.WriteString("\n")
		}
		for _, line := range b.rendered(width, false) {
			all.WriteString(line + "\n")
		}
	}
	return all.String()
}
