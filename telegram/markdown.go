package telegram

import (
	"regexp"
	"strings"
)

// span is a piece of a text, as it is shown. Of a model's Markdown only code is kept as such: what else it means by
// its signs cannot be told safely, and they are shown as they are.
type span struct {
	kind     spanKind
	language string // of a block; ""
	text     string
}

type spanKind uint8

const (
	spanText  spanKind = iota
	spanCode           // within a line, without a backtick
	spanBlock          // lines of code, the last one without its line feed
)

// scan reads the code in a model's Markdown. Joined by plain, the spans are the text again.
func scan(text string) (spans []span) {
	for text != "" {
		before, block, rest := cutBlock(text)
		spans = append(spans, scanLines(before)...)
		if block.text != "" {
			spans = append(spans, block)
		}
		text = rest
	}
	return spans
}

// fence begins a block of code.
var fence = regexp.MustCompile("(?m)^```([A-Za-z0-9_+#.-]{0,32})\n")

const closing = "\n```"

// cutBlock finds the first block of code whose fences stand on lines of their own. Its text is "" where there is none.
func cutBlock(text string) (before string, block span, rest string) {
	for from := 0; ; {
		found := fence.FindStringSubmatchIndex(text[from:])
		if found == nil {
			return text, span{}, ""
		}
		begin, body := from+found[0], from+found[1]
		end := closingFence(text, body)
		if end < 0 {
			return text, span{}, "" // nor does one close a later block
		}
		if isVisible(text[body:end]) {
			language := text[from+found[2] : from+found[3]]
			return text[:begin], span{spanBlock, language, text[body:end]}, text[end+len(closing):]
		}
		from = body
	}
}

// closingFence is where the line feed before the fence stands that closes a block; -1 for none.
func closingFence(text string, body int) int {
	for from := body; ; {
		end := strings.Index(text[from:], closing)
		if end < 0 {
			return -1
		}
		end += from
		if rest := text[end+len(closing):]; rest == "" || rest[0] == '\n' {
			return end
		}
		from = end + len(closing)
	}
}

// inline is code within a line: between single backticks.
var inline = regexp.MustCompile("`+[^`\n]*`*")

func scanLines(text string) (spans []span) {
	at := 0
	for _, found := range inline.FindAllStringIndex(text, -1) {
		if begin, end := found[0], found[1]; isCode(text[begin:end]) {
			spans = appendText(spans, text[at:begin])
			spans = append(spans, span{kind: spanCode, text: text[begin+1 : end-1]})
			at = end
		}
	}
	return appendText(spans, text[at:])
}

// isCode reports whether a match of inline has one backtick at each end, and something between them.
func isCode(match string) bool {
	return len(match) > 2 && strings.Count(match, "`") == 2 && match[1] != '`' && match[len(match)-1] == '`' && isVisible(strings.Trim(match, "`"))
}

// appendText adds text to the last span where that is text too.
func appendText(spans []span, text string) []span {
	if text == "" {
		return spans
	}
	if last := len(spans) - 1; last >= 0 && spans[last].kind == spanText {
		spans[last].text += text
		return spans
	}
	return append(spans, span{text: text})
}

// plain writes spans as the model wrote them.
func plain(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.opening() + s.text + s.closing())
	}
	return b.String()
}

// markdownV2 writes spans in Telegram's MarkdownV2.
func markdownV2(spans []span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.opening())
		escape(&b, s.text, s.kind)
		b.WriteString(s.closing())
	}
	return b.String()
}

// bold writes text in bold.
func bold(text string) string {
	var b strings.Builder
	b.WriteByte('*')
	escape(&b, text, spanText)
	b.WriteByte('*')
	return b.String()
}

func (s span) opening() string {
	switch s.kind {
	case spanCode:
		return "`"
	case spanBlock:
		return "```" + s.language + "\n"
	default:
		return ""
	}
}

func (s span) closing() string {
	switch s.kind {
	case spanCode:
		return "`"
	case spanBlock:
		return closing
	default:
		return ""
	}
}

func escape(b *strings.Builder, text string, kind spanKind) {
	for _, r := range text {
		if isReserved(r, kind) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
}

// isReserved reports whether a rune means something in MarkdownV2, in text or in code.
func isReserved(r rune, kind spanKind) bool {
	if kind != spanText {
		return r == '`' || r == '\\'
	}
	return strings.ContainsRune("\\_*[]()~`>#+-=|{}.!", r)
}
