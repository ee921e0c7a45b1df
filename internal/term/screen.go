package term

import (
	"fmt"
	"io"
	"strings"
)

// Screen draws lines at one position of a terminal, each picture over the previous one. The cursor is below the picture.
// It is for one goroutine.
type Screen struct {
	Out   io.Writer
	lines []int  // the widths of the lines of the current picture
	shown string // the picture itself
	width int    // of the terminal when it was drawn
}

// The escape sequences of a picture. The terminal truncates a line that it takes for wider than was counted, and does
// not wrap it.
const (
	pictureBegins = "\x1b[?25l\x1b[?7l" // hide the cursor, do not wrap
	pictureEnds   = "\x1b[J\x1b[?7h\x1b[?25h"
	lineEnds      = "\x1b[K\r\n"
)

// Show replaces the picture; width is that of the terminal in columns. It writes once, and nothing when nothing has
// changed.
func (s *Screen) Show(picture []string, width int) {
	var text strings.Builder
	widths := make([]int, len(picture))
	for i, line := range picture {
		widths[i] = Width(line)
		text.WriteString(line + lineEnds)
	}
	if text.String() == s.shown && width == s.width {
		return
	}
	_, _ = io.WriteString(s.Out, pictureBegins+s.up(width)+text.String()+pictureEnds) // a terminal that is gone shows nothing
	s.lines, s.shown, s.width = widths, text.String(), width
}

// Wrote says that there are more lines below the picture, such as a question and its answer; lines are their widths.
func (s *Screen) Wrote(lines ...int) {
	s.lines = append(s.lines, lines...)
	s.shown = ""
}

// Keep leaves the picture: the next one is drawn below it.
func (s *Screen) Keep() { s.lines, s.shown = nil, "" }

// up moves to the beginning of the picture. A terminal that became narrower has wrapped its lines again.
func (s *Screen) up(width int) string {
	rows := 0
	for _, line := range s.lines {
		rows += max(1, (line+max(width, 1)-1)/max(width, 1))
	}
	if rows == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", rows)
}
