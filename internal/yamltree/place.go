package yamltree

import (
	"strings"

	"github.com/goccy/go-yaml/token"
)

// PlaceIn is the position in the file of a character of a text, as exactly as it is known: exact in one-line texts
// without escapes, and in those after a bar; otherwise the text's own position. Line and column count from 1 within the
// text.
func (n *Node) PlaceIn(within Position) Position {
	if len(n.source) == 0 || n.Kind != Text {
		return n.At
	}
	switch n.form {
	case token.LiteralType:
		return Position{n.At.Line + within.Line, n.indent() + within.Column}
	case token.StringType:
		return n.positionInLine(0, within)
	case token.SingleQuoteType, token.DoubleQuoteType:
		return n.positionInLine(1, within)
	}
	return n.At
}

// indent counts the spaces before the text that follows a bar: those of its first line that is not blank.
func (n *Node) indent() int {
	for _, line := range n.source[1:] {
		if text := strings.TrimLeft(line, " "); strings.TrimSpace(text) != "" {
			return len(line) - len(text)
		}
	}
	return 0
}

func (n *Node) positionInLine(quote int, within Position) Position {
	line := []rune(n.source[0])
	start := min(n.At.Column-1+quote, len(line))
	if within.Line == 1 && strings.HasPrefix(string(line[start:]), strings.TrimRight(n.Text, "\n")) {
		return Position{n.At.Line, start + within.Column}
	}
	return n.At
}
