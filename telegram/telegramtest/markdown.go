package telegramtest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Entity is a part of a message that is shown in a way of its own. Offset and Length are in UTF-16 units.
type Entity struct {
	Type           string
	Offset, Length int
	Language       string // of pre
	URL            string // of text_link
}

// ParseMarkdownV2 reads a message as Telegram does, and refuses it with Telegram's words. Custom emoji, mentions and
// quotes are not told apart from links and text.
func ParseMarkdownV2(raw string) (text string, entities []Entity, err error) {
	p := parser{raw: raw}
	for p.at < len(raw) {
		if err := p.step(); err != nil {
			return "", nil, err
		}
	}
	if len(p.open) > 0 {
		last := p.open[len(p.open)-1]
		return "", nil, refused("Can't find end of %s entity at byte offset %d", last.name, last.byteOffset)
	}
	return p.text.String(), p.entities, nil
}

// markupError is why a message is refused, in Telegram's words.
type markupError string

func (e markupError) Error() string { return string(e) }

func refused(format string, values ...any) error { return markupError(fmt.Sprintf(format, values...)) }

type parser struct {
	raw      string
	at       int // in raw
	text     strings.Builder
	units    int // of text
	open     []opened
	entities []Entity
}

type opened struct {
	mark       string // that closes it
	name       string // in errors
	byteOffset int
	entity     Entity
}

const (
	reserved = "_*[]()~`>#+-=|{}.!"
)

// step reads one character, escape or mark.
func (p *parser) step() error {
	c := p.raw[p.at]
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

// take takes a character over.
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

// begin opens an entity, or says that a character is reserved.
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
	if c == '>' && (p.at == 0 || p.raw[p.at-1] == '\n') {
		p.entities = append(p.entities, Entity{Type: "blockquote", Offset: p.units})
		p.at++
		return nil
	}
	return refused("Character '%c' is reserved and must be escaped with the preceding '\\'", c)
}

// language reads the word behind the mark of a block of code, and the line feed before its first line.
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
		end := strings.IndexByte(p.raw[p.at:], ')')
		if end < 0 {
			return refused("Can't find end of a URL at byte offset %d", p.at)
		}
		done.entity.URL = p.raw[p.at+1 : p.at+end]
		p.at += end + 1
	}
	if done.entity.Length = p.units - done.entity.Offset; done.entity.Length > 0 {
		p.entities = append(p.entities, done.entity)
	}
	return nil
}
