package markdown

import (
	"strings"

	"github.com/rivo/uniseg"
)

// run is text in one style. A line end in it ends the line.
type run struct{ text, style string }

// wrapper fills lines between words; a word is what is shown without a break: pieces of one or more runs.
type wrapper struct {
	width  int
	lines  []string
	line   strings.Builder
	column int
	word   []run
	length int    // of the word, in columns
	spaces string // before the word
	style  string // of the spaces
}

// wrap wraps styled text to lines of a width in columns. Words that are longer are cut, and between characters that take
// two columns a line may end.
func wrap(runs []run, width int) []string {
	w := &wrapper{width: max(width, 2)}
	for _, part := range runs {
		w.add(part)
	}
	w.endWord()
	if w.column > 0 {
		w.endLine()
	}
	return w.lines
}

func (w *wrapper) add(part run) {
	rest, state := part.text, -1
	for len(rest) > 0 {
		var cluster string
		var columns int
		cluster, rest, columns, state = uniseg.FirstGraphemeClusterInString(rest, state)
		switch {
		case cluster == "\n" || cluster == "\r\n":
			w.endWord()
			w.endLine()
		case cluster == " " || cluster == "\t":
			w.endWord()
			w.spaces, w.style = " ", part.style
		default:
			if columns > 1 || w.length+columns > w.width {
				w.endWord()
			}
			w.addToWord(cluster, part.style)
			if w.length += columns; columns > 1 {
				w.endWord()
			}
		}
	}
}

func (w *wrapper) addToWord(cluster, style string) {
	if last := len(w.word) - 1; last >= 0 && w.word[last].style == style {
		w.word[last].text += cluster
		return
	}
	w.word = append(w.word, run{cluster, style})
}

// endWord puts the word on the line, or on the next one where it does not fit.
func (w *wrapper) endWord() {
	if len(w.word) == 0 {
		return
	}
	switch {
	case w.column+len(w.spaces)+w.length > w.width && w.column > 0:
		w.endLine()
	case w.column > 0 && w.spaces != "":
		w.line.WriteString(styled(spaceStyle(w.style), w.spaces))
		w.column++
	}
	for _, part := range w.word {
		w.line.WriteString(styled(part.style, part.text))
	}
	w.column += w.length
	w.word, w.length, w.spaces = nil, 0, ""
}

// spaceStyle is the style of a space: it has none but where it is visible.
func spaceStyle(style string) string {
	if strings.Contains(style, underline) && strings.HasPrefix(style, underline) {
		return style
	}
	return ""
}

func (w *wrapper) endLine() {
	w.lines = append(w.lines, w.line.String())
	w.line.Reset()
	w.column, w.spaces = 0, ""
}

// Wrap wraps text without styles to lines of a width in columns, between words. The beginnings of lines stay as they are.
func Wrap(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " \r")
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if len(indent) > width/2 {
			indent = ""
		}
		rows := wrap([]run{{strings.TrimLeft(line, " "), ""}}, width-len(indent))
		if len(rows) == 0 {
			rows = []string{""}
		}
		for _, row := range rows {
			lines = append(lines, indent+row)
		}
	}
	return lines
}
