package chatscreen

import (
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/markdown"
	"github.com/continuo-log/continuo/internal/term"
)

// kind is the kind of a block.
type kind int

const (
	said     kind = iota // by a person
	answered             // by a model
	thought              // by a model, before its answer
	called               // a tool call, with its result once there is one
	command              // that a person gave
	aside                // output of a command, with styles
	note                 // a remark, dim
	failure              // an error
)

// block is one thing in the transcript. Its rendering is kept until the text, the width or the details change.
type block struct {
	kind   kind
	text   string
	result string // of a call
	head   string // of a result
	fresh  bool   // of this session: it is printed when the screen closes
	count  int    // of a note: how often it was repeated
	open   bool   // more text may come

	lines   []string
	width   int
	details bool
	length  int
}

// paint styles what the screen shows.
const paint = term.Style(true)

// rendered are the lines of a block, without the empty line below it.
func (b *block) rendered(width int, details bool) []string {
	length := len(b.text) + len(b.result) + len(b.head) + b.count
	if b.lines == nil || b.width != width || b.details != details || b.length != length {
		b.lines, b.width, b.details, b.length = b.render(width, details), width, details, length
	}
	return b.lines
}

func (b *block) render(width int, details bool) []string {
	switch b.kind {
	case said:
		return prefixed(wrapped(b.text, width-2, paint.Bold), paint.Cyan("› "), "  ")
	case answered:
		return markdown.Render(b.text, width)
	case thought:
		return b.thinking(width, details)
	case called:
		return b.call(width, details)
	case aside:
		return styledLines(b.text, width)
	case failure:
		return prefixed(wrapped(b.text, width-2, paint.Red), paint.Red("✗ "), "  ")
	default:
		text := b.text
		if b.count > 0 {
			text += fmt.Sprintf(" (×%d)", b.count+1)
		}
		return wrapped(text, width, paint.Dim)
	}
}

// thinkingLines is how much of the thinking is shown while it goes on.
const thinkingLines = 3

// thinking shows the end of the thinking while it goes on, and afterwards only that there was some.
func (b *block) thinking(width int, details bool) []string {
	lines := wrapped(strings.TrimSpace(b.text), width-2, paint.Dim)
	switch {
	case details:
	case b.open:
		lines = lines[max(len(lines)-thinkingLines, 0):]
	default:
		return []string{paint.Dim(term.Fit("∴ thought, "+term.Count(len(strings.Fields(b.text)), "word")+" (Ctrl-T shows it)", width))}
	}
	return prefixed(lines, paint.Dim("∴ "), "  ")
}

// resultLines is how much of a result is shown with details.
const resultLines = 20

func (b *block) call(width int, details bool) []string {
	if !details {
		lines := []string{paint.Yellow("→ ") + term.Fit(firstLine(b.text), max(width-2, 1))}
		if b.head != "" {
			lines = append(lines, paint.Dim("  "+term.Fit(b.head, max(width-2, 1))))
		}
		return lines
	}
	lines := prefixed(wrapped(b.text, width-2, paint.None), paint.Yellow("→ "), "  ")
	if b.head != "" {
		lines = append(lines, paint.Dim("  "+term.Fit(b.head, max(width-2, 1))))
		result := wrapped(strings.TrimRight(b.result, "\n"), width-4, paint.Dim)
		if more := len(result) - resultLines; more > 0 {
			result = append(result[:resultLines:resultLines], paint.Dim(fmt.Sprintf("… %s more", term.Count(more, "line"))))
		}
		lines = append(lines, prefixed(result, "    ", "    ")...)
	}
	return lines
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// wrapped is text in one style, wrapped to a width.
func wrapped(text string, width int, style func(string) string) []string {
	var lines []string
	for _, line := range markdown.Wrap(term.Clean(text), max(width, 4)) {
		lines = append(lines, style(line))
	}
	return lines
}

// prefixed puts a mark before the first line, and an indent before the others.
func prefixed(lines []string, mark, indent string) []string {
	for i, line := range lines {
		if i == 0 {
			lines[i] = mark + line
		} else {
			lines[i] = indent + line
		}
	}
	return lines
}

// styledLines cuts lines with styles to a width.
func styledLines(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		lines = append(lines, fold(line, width)...)
	}
	return lines
}

// shownText is what a message says, and a line for each part that is no text or a file.
func shownText(content continuo.Content) string {
	if !content.IsParts() {
		return content.String()
	}
	var words []string
	for _, part := range content.Parts() {
		switch name, isFile := FileName(part.Text); {
		case part.IsText() && isFile:
			words = append(words, fmt.Sprintf("[%s · %s]", name, term.Count(strings.Count(part.Text, "\n")-2, "line")))
		case part.IsText():
			words = append(words, part.Text)
		default:
			words = append(words, "["+strings.TrimSuffix(part.Type, "_url")+"]")
		}
	}
	return strings.Join(words, "\n")
}

// fileMark begins the part of a message that is a file.
const fileMark = "File: "

// FileText is the text of a part that holds a file, FileName the name in it.
func FileText(name, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fileMark + name + "\n" + fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// FileName is the name of the file that a part holds.
func FileName(text string) (string, bool) {
	name, ok := strings.CutPrefix(firstLine(text), fileMark)
	return name, ok && strings.Contains(text, "\n```")
}

// callText formats a tool call as in a program.
func callText(call continuo.ToolCall) string {
	return term.OneLine(call.Name, 60) + "(" + term.OneLine(call.Arguments, 2000) + ")"
}

// resultHead describes a tool's result on one line.
func resultHead(entry *continuo.Entry) string {
	words := "←"
	if entry.Outcome != "" {
		words += " " + term.OneLine(entry.Outcome, 200) + " ·"
	}
	words += " " + term.Count(entry.Chars, "character")
	if entry.DurationMS > 0 {
		words += " · " + term.Number(entry.DurationMS) + " ms"
	}
	return words
}

// blocksOf are the blocks of stored entries.
func blocksOf(entries []continuo.Entry) []*block {
	var blocks []*block
	calls := map[string]*block{}
	for i := range entries {
		entry := &entries[i]
		if entry.Hidden && entry.Role != continuo.User || entry.Summary != nil || entry.Recall != nil {
			continue
		}
		switch entry.Role {
		case continuo.User:
			blocks = append(blocks, &block{kind: said, text: shownText(entry.Content)})
		case continuo.Assistant:
			if entry.Reasoning != nil && entry.Reasoning.Text != "" {
				blocks = append(blocks, &block{kind: thought, text: entry.Reasoning.Text})
			}
			if text := shownText(entry.Content); text != "" {
				blocks = append(blocks, &block{kind: answered, text: term.Clean(text)})
			}
			for _, call := range entry.ToolCalls {
				calls[call.ID] = &block{kind: called, text: callText(call)}
				blocks = append(blocks, calls[call.ID])
			}
			if entry.Error != nil {
				blocks = append(blocks, &block{kind: failure, text: fmt.Sprintf("%s: %s", entry.Error.Reason, entry.Error.Message)})
			}
		case continuo.Tool:
			if b := calls[entry.ToolCallID]; b != nil {
				b.head, b.result = resultHead(entry), shownText(entry.Content)
			}
		}
	}
	return blocks
}
