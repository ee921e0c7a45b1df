package chatscreen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// fold cuts a line with styles into lines of at most a width, each with the styles that it has there.
func fold(line string, width int) []string {
	if ansi.StringWidth(line) <= width {
		return []string{line}
	}
	var lines []string
	style := ""
	for piece := range strings.SplitSeq(ansi.Wrap(line, width, " "), "\n") {
		lines = append(lines, style+piece+"\x1b[m")
		style += stylesOf(piece)
		if at := max(strings.LastIndex(style, "\x1b[0m")+4, strings.LastIndex(style, "\x1b[m")+3); at > 3 {
			style = style[at:]
		}
	}
	return lines
}

// stylesOf are the sequences of styles in a text.
func stylesOf(text string) string {
	var all strings.Builder
	for {
		_, rest, ok := strings.Cut(text, "\x1b[")
		if !ok {
			return all.String()
		}
		codes, after, ok := strings.Cut(rest, "m")
		if !ok {
			return all.String()
		}
		all.WriteString("\x1b[" + codes + "m")
		text = after
	}
}
