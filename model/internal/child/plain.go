package child

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain makes plain text of what a program prints for a terminal, given in pieces that may end anywhere:
// escape sequences and control characters are taken out, line ends are "\n", a lone carriage return too, bytes
// that are no UTF-8 become U+FFFD, and white space at the very end is left out. The zero value is ready.
type Plain struct {
	state   plainState
	ret     bool            // a carriage return came last
	partial []byte          // the beginning of a character
	space   strings.Builder // white space that is only told when something follows it
}

// plainState is where in an escape sequence the text stands; see ECMA-48.
type plainState int

const (
	inText      plainState = iota
	afterEsc               // ESC
	inControl              // ESC [, up to a final byte
	inString               // ESC ] and its like, up to BEL, ESC \ or the end of the line
	inStringEsc            // ESC within a string
)

// Text is what a piece adds to the text.
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

// End is what is left when nothing more comes: a character that broke off.
func (p *Plain) End() string {
	rest := p.partial
	p.partial = nil
	return p.visible(rest)
}

// add takes one byte. Sequences have ASCII bytes only, and no character that is longer has any.
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
		case b < 0x20 || b > 0x7e: // a sequence that broke off
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

// escaped takes the byte behind an ESC.
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

// text takes a byte outside of sequences.
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

// incomplete is how many bytes at the end begin a character that may be completed.
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

// visible is text without the control characters that are longer than a byte, its white space at the end held
// back.
func (p *Plain) visible(clean []byte) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, string(clean)) // which makes U+FFFD of each byte that is no UTF-8
	said := strings.TrimRightFunc(text, unicode.IsSpace)
	if said == "" {
		p.space.WriteString(text)
		return ""
	}
	told := p.space.String() + said
	p.space.Reset()
	p.space.WriteString(text[len(said):])
	return told
}
