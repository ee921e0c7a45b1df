package telegram

import (
	"strings"
)

// span is a piece of a text with one style.
type span struct {
	style
	text string
}

// style is the formatting of a span.
type style struct {
	kind                 spanKind
	bold, italic, strike bool   // of text
	quote                bool   // of text: its lines are in a block quote
	link                 string // of text: the link's URL; "" for none
	language             string // of a block; "" for none
}

type spanKind uint8

const (
	spanText  spanKind = iota
	spanCode           // inline
	spanBlock          // lines of code, the last one without its line feed
)

// verbatim is a text that is shown unchanged, whatever its characters mean in Markdown.
func verbatim(text string) []span { return appendSpan(nil, style{}, clean(text)) }

// appendSpan adds text, to the last span if that has the same style.
func appendSpan(spans []span, as style, text string) []span {
	if text == "" {
		return spans
	}
	if last := len(spans) - 1; last >= 0 && spans[last].style == as {
		spans[last].text += text
		return spans
	}
	return append(spans, span{as, text})
}

// plain writes spans as plain text, for when Telegram refuses the Markdown: with the marks of code, and URLs after the
// text of links.
func plain(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		switch {
		case s.kind != spanText:
			b.WriteString(s.opening() + s.text + s.closing())
		case s.link != "":
			b.WriteString(s.text + " (" + s.link + ")")
		default:
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// markdownV2 writes spans in Telegram's MarkdownV2. Each span opens and closes its own entities, in a quote on each
// line, so that spans can be split anywhere. The text begins a line.
func markdownV2(spans []span) string {
	var b strings.Builder
	lineBegins := true
	for _, s := range spans {
		pieces := s.pieces()
		for i, line := range pieces {
			if i > 0 {
				b.WriteByte('\n')
				lineBegins = true
			}
			if s.quote && lineBegins && (line != "" || i < len(pieces)-1) {
				b.WriteByte('>')
			}
			if line != "" {
				b.WriteString(s.opening())
				escape(&b, line, s.kind)
				b.WriteString(s.closing())
				lineBegins = strings.HasSuffix(line, "\n")
			}
		}
	}
	return b.String()
}

// pieces are the parts of a span that open and close their entities: in a quote each line, else the whole span.
func (s span) pieces() []string {
	if s.quote {
		return strings.Split(s.text, "\n")
	}
	return []string{s.text}
}

// headline writes the name above an answer, in bold and underlined: Markdown has no underline, so that no line of an
// answer can look like it.
func headline(name string) string {
	var b strings.Builder
	escape(&b, name, spanText)
	return "*__" + b.String() + "__*"
}

func (s style) opening() string {
	switch s.kind {
	case spanCode:
		return "`"
	case spanBlock:
		return "```" + s.language + "\n"
	}
	return when(s.link != "", "[") + when(s.strike, "~") + when(s.bold, "*") + when(s.italic, "_")
}

func (s style) closing() string {
	switch s.kind {
	case spanCode:
		return "`"
	case spanBlock:
		return "\n```"
	}
	return when(s.italic, "_") + when(s.bold, "*") + when(s.strike, "~") + when(s.link != "", "]("+urlEscaper.Replace(s.link)+")")
}

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

var urlEscaper = strings.NewReplacer(`\`, `\\`, ")", `\)`)

// cost is how many units the marks of a span take, and how many those of each further line take.
func (s style) cost() (first, line int) {
	first = countUnits(s.opening()) + countUnits(s.closing())
	if s.quote {
		first++
		return first, first
	}
	return first, 0
}

func escape(b *strings.Builder, text string, kind spanKind) {
	for _, r := range text {
		if isReserved(r, kind) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
}

// isReserved reports whether MarkdownV2 reserves a rune, in text or in code.
func isReserved(r rune, kind spanKind) bool {
	if kind != spanText {
		return r == '`' || r == '\\'
	}
	return strings.ContainsRune("\\_*[]()~`>#+-=|{}.!", r)
}
