package telegram

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxPiece is how many bytes of Markdown are parsed at once. The time for parsing grows with the square of the nesting
// of meaningless marks ("[[[[", ">>>>"), so longer texts are parsed piece by piece.
const maxPiece = 8 << 10

// piece is a part of a text that is parsed by itself.
type piece struct {
	text     string
	fence    string // the fence line of the block of code that the piece begins in; "" for none
	trailing string // the line feeds after it
}

// fenceLine matches the first or last line of a block of code.
var fenceLine = regexp.MustCompile("^\\s*(```+[^`]*|~~~+.*)$")

// cutPieces cuts a text before unindented paragraphs outside of blocks of code, else between lines, else within a line.
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

// cutter iterates over the lines of a text.
type cutter struct {
	text   string
	pieces []piece
	start  int    // of the piece
	within string // the fence of the block of code that the piece begins in
	fence  string // the fence of the block of code of the current line; "" for none
	best   int    // the newest good position for a cut
	blank  bool   // the line before is blank
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

// cut ends the piece at the best position up to the start of a line, or within that line if it is too long.
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
	return piece{text: text, fence: c.within, trailing: whole[len(text):min(len(whole), len(text)+2)]}
}
