// Package markdown renders the Markdown of models for a terminal: as lines of a width, with styles. The text may be
// incomplete, as it is while an answer arrives. Tables that do not fit become a list of their rows, and code is
// coloured by a scanner that knows many languages roughly and none exactly.
//
// Text must pass term.Clean first: the only escape sequences in the lines are styles that this package adds. A line
// begins and ends without a style, so that lines can be left out.
package markdown

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// grammar is CommonMark with the tables, task lists and strikethrough of GitHub. Definitions of links are left out, since
// they would not be shown.
var grammar = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewStrikethroughParser(), 500), util.Prioritized(extension.NewTaskCheckBoxParser(), 0))...),
	parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
	parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
)

// The styles, as codes of SGR (ECMA-48). The colours are those that the person chose for their terminal.
const (
	bold      = "1"
	dim       = "2"
	italic    = "3"
	underline = "4"
	struck    = "9"
	heading   = "1;36"
	codeSpan  = "33"
	link      = "4;34"
)

// maxPiece bounds what the parser reads at once, in bytes: its time grows with the square of some nested marks.
const maxPiece = 8 << 10

// Render renders Markdown as lines of at most width columns.
func Render(source string, width int) []string {
	width = max(width, 4)
	var lines []string
	for _, piece := range pieces(source) {
		r := renderer{source: []byte(piece)}
		rendered := r.blocks(grammar.Parse(text.NewReader(r.source)), width)
		if len(lines) > 0 && len(rendered) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, rendered...)
	}
	return lines
}

// pieces cuts a text between paragraphs, outside of fenced code, into pieces of about maxPiece bytes.
func pieces(source string) []string {
	if len(source) <= maxPiece {
		return []string{source}
	}
	var all []string
	var piece strings.Builder
	fence := ""
	for line := range strings.Lines(source) {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence = trimmed[:3]
		case fence != "" && strings.HasPrefix(trimmed, fence):
			fence = ""
		case fence == "" && strings.TrimSpace(line) == "" && piece.Len() > maxPiece:
			all = append(all, piece.String())
			piece.Reset()
		}
		piece.WriteString(line)
	}
	return append(all, piece.String())
}

type renderer struct{ source []byte }

// blocks renders the blocks in a node, with an empty line between them unless they are a tight list's.
func (r *renderer) blocks(node ast.Node, width int) []string {
	var lines []string
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		block := r.block(child, width)
		_, isTight := child.(*ast.TextBlock)
		_, isList := child.(*ast.List)
		if len(lines) > 0 && len(block) > 0 && !isTight && !(isList && node.Kind() == ast.KindListItem) {
			lines = append(lines, "")
		}
		lines = append(lines, block...)
	}
	return lines
}

func (r *renderer) block(node ast.Node, width int) []string {
	switch node := node.(type) {
	case *ast.Heading:
		style := heading
		if node.Level > 2 {
			style = bold
		}
		return wrap(r.inline(node, style), width)
	case *ast.List:
		return r.list(node, width)
	case *ast.FencedCodeBlock:
		return r.code(node, string(node.Language(r.source)), width)
	case *ast.CodeBlock:
		return r.code(node, "", width)
	case *ast.Blockquote:
		return indented(r.blocks(node, width-2), styled(dim, "▏")+" ")
	case *ast.ThematicBreak:
		return []string{styled(dim, strings.Repeat("─", min(width, 40)))}
	case *ast.HTMLBlock:
		return wrap([]run{{strings.TrimRight(r.raw(node), "\n"), dim}}, width)
	case *extensionast.Table:
		return r.table(node, width)
	default:
		if node.Type() == ast.TypeBlock && node.FirstChild() != nil && node.FirstChild().Type() == ast.TypeBlock {
			return r.blocks(node, width)
		}
		return wrap(r.inline(node, ""), width)
	}
}

// raw is the text of a block's lines.
func (r *renderer) raw(node ast.Node) string {
	var all strings.Builder
	lines := node.Lines()
	for i := range lines.Len() {
		line := lines.At(i)
		all.Write(line.Value(r.source))
	}
	if html, ok := node.(*ast.HTMLBlock); ok && html.HasClosure() {
		all.Write(html.ClosureLine.Value(r.source))
	}
	return all.String()
}

func (r *renderer) code(node ast.Node, language string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(r.raw(node), "\n"), "\n") {
		lines = append(lines, line)
	}
	return indented(highlight(lines, language, max(width-2, 2)), "  ")
}

func (r *renderer) list(list *ast.List, width int) []string {
	var lines []string
	number := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "•"
		if list.IsOrdered() {
			mark = fmt.Sprintf("%d.", number)
			number++
		}
		indent := strings.Repeat(" ", len([]rune(mark))+1)
		if len(lines) > 0 && !list.IsTight {
			lines = append(lines, "")
		}
		for i, line := range r.blocks(item, max(width-len(indent), 2)) {
			if i == 0 && (strings.HasPrefix(line, "☐ ") || strings.HasPrefix(line, "☑ ")) { // the box is the mark
				lines = append(lines, line)
				continue
			}
			if i == 0 {
				line = styled("36", mark) + " " + line
			} else if line != "" {
				line = indent + line
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// indented puts a prefix before every line.
func indented(lines []string, prefix string) []string {
	for i, line := range lines {
		lines[i] = prefix + line
	}
	return lines
}

// inline collects the text of a node's children, with their styles.
func (r *renderer) inline(node ast.Node, style string) (runs []run) {
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			runs = append(runs, run{unescaped(child.Segment.Value(r.source), child.IsRaw()), style})
			if child.HardLineBreak() {
				runs = append(runs, run{"\n", ""})
			} else if child.SoftLineBreak() {
				runs = append(runs, run{" ", style})
			}
		case *ast.String:
			runs = append(runs, run{string(child.Value), style})
		case *ast.CodeSpan:
			for _, part := range r.inline(child, joined(style, codeSpan)) {
				runs = append(runs, run{part.text, part.style})
			}
		case *ast.Emphasis:
			kind := italic
			if child.Level > 1 {
				kind = bold
			}
			runs = append(runs, r.inline(child, joined(style, kind))...)
		case *extensionast.Strikethrough:
			runs = append(runs, r.inline(child, joined(style, struck))...)
		case *extensionast.TaskCheckBox:
			box := "☐ "
			if child.IsChecked {
				box = "☑ "
			}
			runs = append(runs, run{box, style})
		case *ast.Link:
			runs = append(runs, r.link(child, string(child.Destination), style)...)
		case *ast.Image:
			runs = append(runs, r.link(child, string(child.Destination), style)...)
		case *ast.AutoLink:
			runs = append(runs, run{string(child.URL(r.source)), joined(style, link)})
		case *ast.RawHTML:
			for i := range child.Segments.Len() {
				segment := child.Segments.At(i)
				runs = append(runs, run{string(segment.Value(r.source)), joined(style, dim)})
			}
		default:
			runs = append(runs, r.inline(child, style)...)
		}
	}
	return runs
}

// link is a link's text, and its destination unless that is the text.
func (r *renderer) link(node ast.Node, destination, style string) []run {
	runs := r.inline(node, joined(style, link))
	var words strings.Builder
	for _, part := range runs {
		words.WriteString(part.text)
	}
	if words.String() != destination && destination != "" {
		runs = append(runs, run{" (" + destination + ")", joined(style, dim)})
	}
	return runs
}

// unescaped is text without the backslashes and entities that Markdown removes.
func unescaped(text []byte, isRaw bool) string {
	if isRaw {
		return string(text)
	}
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(text))))
}

func joined(style, more string) string {
	if style == "" {
		return more
	}
	return style + ";" + more
}

func styled(style, text string) string {
	if style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[m"
}
