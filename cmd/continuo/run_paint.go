package main

import (
	"fmt"
	"io"
	"strings"
)

// row is one line of a picture: texts, each with its own colour.
type row []cell

// width is how many columns the row takes.
func (r row) width() int {
	width := 0
	for _, c := range r {
		width += cells(c.text)
	}
	return width
}

// fit cuts the row to a width in cells.
func (r row) fit(width int) row {
	var fitted row
	for _, c := range r {
		room := width - fitted.width()
		if room <= 0 {
			break
		}
		c.text = fit(c.text, room)
		fitted = append(fitted, c)
	}
	return fitted
}

// plain is the row without paint, and without spaces at its end.
func (r row) plain() string {
	var text strings.Builder
	for _, c := range r {
		text.WriteString(c.text)
	}
	return strings.TrimRight(text.String(), " ")
}

func (r row) painted() string {
	var text strings.Builder
	for _, c := range r {
		if c.paint != nil && strings.TrimSpace(c.text) != "" {
			text.WriteString(c.paint(c.text))
		} else {
			text.WriteString(c.text)
		}
	}
	return strings.TrimRight(text.String(), " ")
}

// painter draws pictures at one position of a terminal, each over the previous one. The cursor is below the picture. It
// is for one goroutine.
type painter struct {
	out   io.Writer
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

// show replaces the picture. It writes once, and nothing when nothing has changed.
func (p *painter) show(picture []row, width int) {
	var text strings.Builder
	widths := make([]int, len(picture))
	for i, line := range picture {
		widths[i] = line.width()
		text.WriteString(line.painted() + lineEnds)
	}
	if text.String() == p.shown && width == p.width {
		return
	}
	_, _ = io.WriteString(p.out, pictureBegins+p.up(width)+text.String()+pictureEnds) // a terminal that is gone shows nothing
	p.lines, p.shown, p.width = widths, text.String(), width
}

// wrote says that there are more lines below the picture, such as a question and its answer; lines are their widths.
func (p *painter) wrote(lines ...int) {
	p.lines = append(p.lines, lines...)
	p.shown = ""
}

// keep leaves the picture: the next one is drawn below it.
func (p *painter) keep() { p.lines, p.shown = nil, "" }

// up moves to the beginning of the picture. A terminal that became narrower has wrapped its lines again.
func (p *painter) up(width int) string {
	rows := 0
	for _, line := range p.lines {
		rows += max(1, (line+max(width, 1)-1)/max(width, 1))
	}
	if rows == 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", rows)
}
