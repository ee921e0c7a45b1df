package telegramtest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Entity is a part of a message with its own formatting. Offset and Length are in UTF-16 units.
type Entity struct {
	Type           string
	Offset, Length int
	Language       string // of pre
	URL            string // of text_link
}

// ParseMarkdownV2 parses a message as Telegram does, with Telegram's error messages. It does not distinguish custom
// emoji and mentions from links.
func ParseMarkdownV2(raw string) (text string, entities []Entity, err error) {
	p := parser{raw: raw}
	for p.at < len(raw) {
		if err := p.step(); err != nil {
			return "", nil, err
		}
	}
	if len(p.open) > 0 {
		last := p.open[len(p.open)-1]
		return "", nil, last.unclosed()
	}
	p.endQuote()
	return p.text.String(), p.entities, nil
}

// markupError is why a message is refused, in Telegram's wording.
type markupError string

func (e markupError) Error() string { return string(e) }

func refused(format string, values ...any) error { return markupError(fmt.Sprintf(format, values...)) }

type parser struct {
	raw      string
	at       int // in raw
	text     strings.Builder
	units    int // of text
	open     []opened
	quote    *Entity // the quote that the text is in; nil for none
	entities []Entity
}

type opened struct {
	mark       string // the mark that closes it
	name       string // in errors
	byteOffset int
	entity     Entity
}

func (o opened) unclosed() error {
	return refused("Can't find end of %s entity at byte offset %d", o.name, o.byteOffset)
}

const reserved = "_*[]()~`>#+-=|{}.!"

// step reads one character, escape or mark.
func (p *parser) step() error {
	c := p.raw[p.at]
	if c == '\n' && p.quote != nil {
		return p.endLine()
	}
	if c == '\\' && p.at+1 < len(p.raw) && p.raw[p.at+1] > 0 && p.raw[p.at+1] <= 126 {
		p.at++
		p.take()
		return nil
	}
	if p.inCode() {
		if c == '`' && strings.HasPrefix(p.raw[p.at:], p.top().mark) {
			return p.close()
		}
		p.take()
		return nil
	}
	if !strings.ContainsRune(reserved, rune(c)) {
		p.take()
		return nil
	}
	if p.closes() {
		return p.close()
	}
	return p.begin(c)
}

// take copies a character.
func (p *parser) take() {
	r, size := utf8.DecodeRuneInString(p.raw[p.at:])
	p.text.WriteString(p.raw[p.at : p.at+size])
	p.at += size
	p.units++
	if r > 0xFFFF {
		p.units++
	}
}

func (p *parser) top() *opened { return &p.open[len(p.open)-1] }

func (p *parser) inCode() bool { return len(p.open) > 0 && p.top().mark[0] == '`' }

// closes reports whether the innermost entity ends here. An underscore that is followed by another is one of a pair.
func (p *parser) closes() bool {
	if len(p.open) == 0 || !strings.HasPrefix(p.raw[p.at:], p.top().mark) {
		return false
	}
	return p.top().mark != "_" || !strings.HasPrefix(p.raw[p.at:], "__")
}

// begin opens an entity, or reports that a character is reserved.
func (p *parser) begin(c byte) error {
	rest := p.raw[p.at:]
	for _, kind := range []struct{ mark, closing, entity, name string }{
		{"__", "__", "underline", "Underline"},
		{"_", "_", "italic", "Italic"},
		{"*", "*", "bold", "Bold"},
		{"~", "~", "strikethrough", "Strikethrough"},
		{"||", "||", "spoiler", "Spoiler"},
		{"```", "```", "pre", "Pre"},
		{"`", "`", "code", "Code"},
		{"![", "]", "custom_emoji", "CustomEmoji"},
		{"[", "]", "text_link", "TextUrl"},
	} {
		if strings.HasPrefix(rest, kind.mark) {
			p.open = append(p.open, opened{kind.closing, kind.name, p.at, Entity{Type: kind.entity, Offset: p.units}})
			p.at += len(kind.mark)
			if kind.entity == "pre" {
				p.language()
			}
			return nil
		}
	}
	if c == '>' && len(p.open) == 0 && (p.at == 0 || p.raw[p.at-1] == '\n') {
		p.quote = &Entity{Type: "blockquote", Offset: p.units}
		p.at++
		return nil
	}
	return refused("Character '%c' is reserved and must be escaped with the preceding '\\'", c)
}

// endLine ends a line of a quote, and the quote if the next line does not begin with its mark. No entity may extend
// over the end of a quote.
func (p *parser) endLine() error {
	p.take()
	if strings.HasPrefix(p.raw[p.at:], ">") {
		p.at++
		return nil
	}
	if len(p.open) > 0 {
		return p.top().unclosed()
	}
	p.endQuote()
	return nil
}

func (p *parser) endQuote() {
	if p.quote == nil {
		return
	}
	if p.quote.Length = p.units - p.quote.Offset; p.quote.Length > 0 {
		p.entities = append(p.entities, *p.quote)
	}
	p.quote = nil
}

// language reads the language after the mark of a block of code, and the line feed before its first line.
func (p *parser) language() {
	rest := p.raw[p.at:]
	end := strings.IndexAny(rest, " \t\r\n`")
	if end > 0 && rest[end] != '`' {
		p.top().entity.Language, p.top().name = rest[:end], "PreCode"
		p.at += end
	}
	if strings.HasPrefix(p.raw[p.at:], "\r\n") {
		p.at += 2
	} else if strings.HasPrefix(p.raw[p.at:], "\n") {
		p.at++
	}
}

// close ends the innermost entity.
func (p *parser) close() error {
	done := *p.top()
	p.open = p.open[:len(p.open)-1]
	p.at += len(done.mark)
	if done.mark == "]" && strings.HasPrefix(p.raw[p.at:], "(") {
		address, end := address(p.raw[p.at+1:])
		if end < 0 {
			return refused("Can't find end of a URL at byte offset %d", p.at)
		}
		done.entity.URL = address
		p.at += 1 + end
	}
	if done.entity.Length = p.units - done.entity.Offset; done.entity.Length > 0 {
		p.entities = append(p.entities, done.entity)
	}
	return nil
}

// address reads a URL up to its unescaped closing bracket, and returns the position after that; -1 if there is none.
func address(raw string) (address string, end int) {
	var b strings.Builder
	for at := 0; at < len(raw); at++ {
		switch {
		case raw[at] == ')':
			return b.String(), at + 1
		case raw[at] == '\\' && at+1 < len(raw):
			at++
		}
		b.WriteByte(raw[at])
	}
	return "", -1
}
