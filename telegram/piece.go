package telegram

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxPiece is how many bytes of Markdown are read at once. The time for reading grows with the square of the nesting
// that signs without sense make ("[[[[", ">>>>"), so that longer texts are read piece by piece.
const maxPiece = 8 << 10

// piece is a part of a text that is read by itself.
type piece struct {
	text   string
	fence  string // the line that begins the block of code in which the piece begins; ""
	behind string // the line feeds behind it
}

// fenceLine begins or ends a block of code.
var fenceLine = regexp.MustCompile("^\\s*(```+[^`]*|~~~+.*)$")

// cutPieces cuts a text before paragraphs that begin at the margin and in no block of code, else between lines, else
// within a line.
func cutPieces(text string) (pieces []piece) {
	c := cutter{text: text}
	for end := 0; end < len(text); {
		begin := end
		end = len(text)
		if at := strings.IndexByte(text[begin:], '\n'); at >= 0 {
			end = begin + at + 1
		}
		for end-c.start > maxPiece {
			c.cut(begin)
			begin = max(begin, c.start)
		}
		c.line(begin, strings.TrimSuffix(text[begin:end], "\n"))
	}
	return append(c.pieces, c.piece(len(text)))
}

// cutter goes over the lines of a text.
type cutter struct {
	text   string
	pieces []piece
	start  int    // of the piece
	within string // the fence of the block of code that it begins in
	fence  string // that of the block of code that the lines are in now; ""
	best   int    // the newest place for a good cut
	blank  bool   // the line before says nothing
}

func (c *cutter) line(begin int, line string) {
	if c.blank && c.fence == "" && line != "" && line[0] != ' ' && line[0] != '\t' {
		c.best = begin
	}
	c.blank = strings.TrimSpace(line) == ""
	switch {
	case !fenceLine.MatchString(line):
	case c.fence == "":
		c.fence = strings.TrimSpace(line)
	case strings.HasPrefix(strings.TrimSpace(line), strings.TrimRight(c.fence[:3], " ")):
		c.fence = ""
	}
}

// cut ends the piece at the best place up to the line that begins at a place, or within that line where it is too long.
func (c *cutter) cut(line int) {
	at, within := c.best, ""
	if at <= c.start {
		at, within = line, c.fence
	}
	if at <= c.start {
		for at = c.start + maxPiece; !utf8.RuneStart(c.text[at]); {
			at--
		}
	}
	c.pieces = append(c.pieces, c.piece(at))
	c.start, c.within = at, within
}

func (c *cutter) piece(end int) piece {
	whole := c.text[c.start:end]
	text := strings.TrimRight(whole, "\n")
	return piece{text: text, fence: c.within, behind: whole[len(text):min(len(whole), len(text)+2)]}
}
