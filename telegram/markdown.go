package telegram

import (
	"bytes"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/continuo-log/continuo/internal/plaintext"
)

// markdown parses models' text: CommonMark with strikethrough. HTML is text, and so are link definitions, which would
// otherwise not be shown. Tables are parsed in table.go: the parser for GitHub's tables drops cells.
var markdown = parser.NewParser(
	parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	),
	parser.WithInlineParsers(inlineParsers()...),
)

// inlineMarkdown parses one paragraph, without block syntax.
var inlineMarkdown = parser.NewParser(
	parser.WithBlockParsers(util.Prioritized(parser.NewParagraphParser(), 1000)), parser.WithInlineParsers(inlineParsers()...),
)

func inlineParsers() []util.PrioritizedValue {
	return []util.PrioritizedValue{
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(asterisks{}, 450),
		util.Prioritized(parser.NewEmphasisParser(), 500),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
	}
}

// asterisks treats asterisks between two digits as text: they are a product or a power, which would lose its operator
// as emphasis.
type asterisks struct{}

func (asterisks) Trigger() []byte { return []byte{'*'} }

func (asterisks) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	n := len(line) - len(bytes.TrimLeft(line, "*"))
	if n == len(line) || !unicode.IsDigit(block.PrecendingCharacter()) || !unicode.IsDigit(rune(line[n])) {
		return nil
	}
	block.Advance(n)
	return ast.NewTextSegment(segment.WithStop(segment.Start + n))
}

// scan parses a model's Markdown. URLs of links take at most a quarter of limit.
func scan(source string, limit int) (spans []span) {
	separator := ""
	for _, piece := range cutPieces(clean(source)) {
		if piece.fence != "" {
			piece.text = piece.fence + "\n" + piece.text
		}
		r := renderer{source: []byte(piece.text), maxURL: limit / 4}
		r.blocks(markdown.Parse(text.NewReader(r.source)))
		spans = join(spans, separator, r.spans, piece.fence != "")
		separator = piece.trailing
	}
	return spans
}

// join concatenates two pieces. A piece that continues a block of code extends the block.
func join(spans []span, separator string, next []span, inBlock bool) []span {
	last := len(spans) - 1
	if inBlock && last >= 0 && len(next) > 0 && spans[last].kind == spanBlock && spans[last].style == next[0].style {
		spans[last].text += separator
	} else {
		spans = appendSpan(spans, style{}, separator)
	}
	if len(next) == 0 {
		return spans
	}
	return append(appendSpan(spans, next[0].style, next[0].text), next[1:]...)
}

// renderer converts a document to spans.
type renderer struct {
	source []byte
	maxURL int // UTF-16 units
	spans  []span
	style  style
	indent string // of lines in a list
}

func (r *renderer) write(text string) { r.spans = appendSpan(r.spans, r.style, text) }

// as renders with a modified style.
func (r *renderer) as(change func(*style), render func()) {
	before := r.style
	change(&r.style)
	render()
	r.style = before
}

// blocks renders the blocks within a node. The first one begins at the current position.
func (r *renderer) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n != parent.FirstChild() {
			r.write(when(n.HasBlankPreviousLines(), "\n") + "\n")
			if !isCodeBlock(n) {
				r.write(r.indent)
			}
		}
		r.block(n)
	}
}

func isCodeBlock(n ast.Node) bool {
	return n.Kind() == ast.KindFencedCodeBlock || n.Kind() == ast.KindCodeBlock
}

func (r *renderer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		r.as(func(s *style) { s.bold = true }, func() { r.inlines(n) })
	case *ast.Paragraph, *ast.TextBlock:
		r.paragraph(n)
	case *ast.ThematicBreak:
		r.write("———")
	case *ast.FencedCodeBlock:
		r.code(linesOf(n, r.source), string(n.Language(r.source)))
	case *ast.CodeBlock:
		r.code(linesOf(n, r.source), "")
	case *ast.Blockquote:
		r.as(func(s *style) { s.quote = true }, func() { r.blocks(n) })
	case *ast.List:
		r.list(n)
	default:
		r.blocks(n)
	}
}

// list renders a list: each item's blocks follow a mark or a number.
func (r *renderer) list(list *ast.List) {
	number, outer := list.Start, r.indent
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		if item != list.FirstChild() {
			r.write(when(item.HasBlankPreviousLines(), "\n") + "\n" + outer)
		}
		mark := "• "
		if list.IsOrdered() {
			mark = strconv.Itoa(number) + string(list.Marker) + " "
			number++
		}
		r.write(mark)
		r.indent = outer + "   "
		if first := firstOf(item); isCodeBlock(first) || r.isTable(first) { // a block of code begins a line
			r.write("\n")
		}
		r.blocks(item)
		r.indent = outer
	}
}

// isTable reports whether a block is a paragraph that begins with a table.
func (r *renderer) isTable(n ast.Node) bool {
	switch n.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		return tableHeader(strings.Split(linesOf(n, r.source), "\n")) == 0
	}
	return false
}

// firstOf returns the first block of an item, or the item itself if it has none.
func firstOf(item ast.Node) ast.Node {
	if first := item.FirstChild(); first != nil {
		return first
	}
	return item
}

// paragraph renders text, and a table with the lines before it.
func (r *renderer) paragraph(n ast.Node) {
	lines := strings.Split(linesOf(n, r.source), "\n")
	header := tableHeader(lines)
	if header < 0 {
		r.inlines(n)
		return
	}
	if header > 0 {
		r.writeText(strings.Join(lines[:header], "\n"))
		r.write("\n")
	}
	r.code(layOut(lines[header:]), "")
}

// writeText renders Markdown without blocks.
func (r *renderer) writeText(source string) {
	inner := renderer{source: []byte(source), maxURL: r.maxURL, style: r.style, indent: r.indent}
	for n := inlineMarkdown.Parse(text.NewReader(inner.source)).FirstChild(); n != nil; n = n.NextSibling() {
		inner.inlines(n)
	}
	r.add(inner.spans)
}

func linesOf(n ast.Node, source []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(source))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// language matches the language names that a block of code may have.
var language = regexp.MustCompile(`^[A-Za-z0-9_+#.-]{1,32}$`)

// code renders a block of code, never inside a quote: Telegram shows none there.
func (r *renderer) code(code, name string) {
	if plaintext.IsBlank(code) {
		return
	}
	if !language.MatchString(name) {
		name = ""
	}
	r.spans = append(r.spans, span{style{kind: spanBlock, language: name}, code})
}

// inlines renders a node's inline content.
func (r *renderer) inlines(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		r.inline(n)
	}
}

func (r *renderer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		r.text(n)
	case *ast.String:
		r.write(string(n.Value))
	case *ast.CodeSpan:
		r.codeSpan(n)
	case *ast.Emphasis:
		r.as(func(s *style) { s.bold, s.italic = s.bold || n.Level == 2, s.italic || n.Level == 1 }, func() { r.inlines(n) })
	case *extensionast.Strikethrough:
		r.as(func(s *style) { s.strike = true }, func() { r.inlines(n) })
	case *ast.Link:
		r.link(n, string(n.Destination))
	case *ast.Image:
		r.link(n, string(n.Destination))
	case *ast.AutoLink:
		r.write(string(n.Label(r.source)))
	default:
		r.inlines(n)
	}
}

func (r *renderer) text(n *ast.Text) {
	value := n.Value(r.source)
	if !n.IsRaw() {
		value = util.UnescapePunctuations(value)
	}
	r.write(string(value))
	if n.SoftLineBreak() || n.HardLineBreak() {
		r.write("\n" + r.indent)
	}
}

// codeSpan renders inline code. In a link it is text: Telegram supports no code there.
func (r *renderer) codeSpan(n *ast.CodeSpan) {
	var b strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if piece, ok := child.(*ast.Text); ok {
			b.Write(piece.Value(r.source))
		}
	}
	code := strings.ReplaceAll(b.String(), "\n", " ")
	if plaintext.IsBlank(code) || r.style.link != "" {
		r.write(code)
		return
	}
	r.as(func(s *style) { *s = style{kind: spanCode} }, func() { r.write(code) })
}

// link renders a link or an image. A URL that Telegram would not link follows the text.
func (r *renderer) link(n ast.Node, to string) {
	to = string(util.UnescapePunctuations([]byte(to)))
	usable := r.style.link == "" && canFollow(to) && countUnits(urlEscaper.Replace(to)) <= r.maxURL
	inner := renderer{source: r.source, maxURL: r.maxURL, style: r.style, indent: r.indent}
	if usable {
		inner.style.link = to
	}
	inner.inlines(n)
	shown := plainText(inner.spans)
	if plaintext.IsBlank(shown) {
		r.write(to)
		return
	}
	r.add(inner.spans)
	if !usable && to != "" && !strings.HasSuffix(shown, to) {
		r.write(" (" + to + ")")
	}
}

// add appends spans with their own style.
func (r *renderer) add(spans []span) {
	for _, s := range spans {
		r.spans = appendSpan(r.spans, s.style, s.text)
	}
}

// canFollow reports whether Telegram makes a URL a link.
func canFollow(to string) bool {
	parsed, err := url.Parse(to)
	return err == nil && (parsed.Scheme == "https" || parsed.Scheme == "http") && parsed.Host != "" && !strings.ContainsAny(to, " \n\t")
}
