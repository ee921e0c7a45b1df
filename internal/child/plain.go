package child

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain converts a program's terminal output, given in pieces that may end anywhere, to plain text: it
// removes escape sequences and control characters, turns line ends and lone carriage returns into "\n" and
// invalid UTF-8 into U+FFFD, and trims white space at the very end. The zero value is ready to use.
type Plain struct {
	state   plainState
	ret     bool            // the last byte was a carriage return
	partial []byte          // the bytes of an incomplete character
	space   strings.Builder // white space that is held back until other text follows
}

// plainState is the parser's position in an escape sequence; see ECMA-48.
type plainState int

const (
	inText      plainState = iota
	afterEsc               // ESC
	inControl              // ESC [, up to a final byte
	inString               // ESC ] and similar, up to BEL, ESC \ or the end of the line
	inStringEsc            // ESC within a string
)

// Text returns the text that a piece adds.
func (p *Plain) Text(piece []byte) string {
	clean := p.partial
	p.partial = nil
	for _, b := range piece {
		clean = p.add(clean, b)
	}
	if n := incomplete(clean); n > 0 {
		p.partial = bytes.Clone(clean[len(clean)-n:])
		clean = clean[:len(clean)-n]
	}
	return p.visible(clean)
}

// End returns the rest at the end of the input: an incomplete character.
func (p *Plain) End() string {
	rest := p.partial
	p.partial = nil
	return p.visible(rest)
}

// add handles one byte. Sequences have ASCII bytes only, and no multi-byte character has any.
func (p *Plain) add(clean []byte, b byte) []byte {
	switch p.state {
	case inStringEsc:
		if p.state = inText; b == '\\' {
			return clean
		}
		return p.escaped(clean, b)
	case afterEsc:
		p.state = inText
		return p.escaped(clean, b)
	case inControl:
		switch {
		case b == 0x1b:
			p.state = afterEsc
		case b < 0x20 || b > 0x7e: // an incomplete sequence
			p.state = inText
			return p.text(clean, b)
		case b >= 0x40:
			p.state = inText
		}
		return clean
	case inString:
		switch b {
		case 0x07:
			p.state = inText
		case 0x1b:
			p.state = inStringEsc
		case '\n':
			p.state = inText
			return p.text(clean, b)
		}
		return clean
	}
	return p.text(clean, b)
}

// escaped handles the byte after an ESC.
func (p *Plain) escaped(clean []byte, b byte) []byte {
	switch {
	case b == '[':
		p.state = inControl
	case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
		p.state = inString
	case b == 0x1b, b >= 0x20 && b <= 0x2f: // one more byte follows
		p.state = afterEsc
	case b < 0x20 || b > 0x7e:
		return p.text(clean, b)
	}
	return clean
}

// text handles a byte outside of sequences.
func (p *Plain) text(clean []byte, b byte) []byte {
	after := p.ret
	p.ret = b == '\r'
	switch {
	case b == 0x1b:
		p.state = afterEsc
		return clean
	case b == '\r', b == '\n' && !after:
		return append(clean, '\n')
	case b == '\n', b < 0x20 && b != '\t', b == 0x7f:
		return clean
	}
	return append(clean, b)
}

// incomplete returns how many bytes at the end begin a character that may be completed.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// visible removes multi-byte control characters, and holds white space at the end back.
func (p *Plain) visible(clean []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, string(clean)) // turns each invalid byte into U+FFFD
	trimmed := strings.TrimRightFunc(text, unicode.IsSpace)
	if trimmed == "" {
		p.space.WriteString(text)
		return ""
	}
	visible := p.space.String() + trimmed
	p.space.Reset()
	p.space.WriteString(text[len(trimmed):])
	return visible
}
