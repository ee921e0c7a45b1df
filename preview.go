package continuo

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Preview replaces a text that is too long to show: its true size, its beginning and its end.
type Preview struct {
	Head, Tail string
	// The size of the complete text; Lines is the number of its line ends plus one.
	Chars int
	Bytes int64
	Lines int
	// Full is the alias path of the complete text. Default: the preview names no path.
	Full string
}

// fullOutput begins the line of a preview that names the path of the complete text.
const fullOutput = "Full output: "

// String returns the preview as a model reads it.
func (p Preview) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "TOOL_RESULT_PREVIEW (%d characters, %d bytes in %d lines; head and tail are shown)\n", p.Chars, p.Bytes, p.Lines)
	shown := utf8.RuneCountInString(p.Head) + utf8.RuneCountInString(p.Tail)
	fmt.Fprintf(&text, "%s[... %d characters left out ...]\n%s", wholeLine(p.Head), p.Chars-shown, p.Tail)
	if p.Full != "" {
		fmt.Fprintf(&text, "%s%s%s", lineEndAfter(p.Tail), fullOutput, p.Full)
	}
	return text.String()
}

func wholeLine(text string) string { return text + lineEndAfter(text) }

// lineEndAfter returns "\n" for a text that does not end with one, else "".
func lineEndAfter(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return ""
	}
	return "\n"
}

// Preview parses the entry's content as a preview; ok is false when the content is complete.
func (e *Entry) Preview() (preview Preview, ok bool) {
	if e.Output == nil || !e.Content.IsText() {
		return Preview{}, false
	}
	o := e.Output
	preview = Preview{Chars: o.Chars, Bytes: o.Bytes, Lines: o.Lines, Full: e.OutputRef}
	_, rest, _ := strings.Cut(e.Content.text, "\n")
	preview.Head = rest[:min(max(o.Head, 0), len(rest))]
	rest = strings.TrimPrefix(rest[len(preview.Head):], lineEndAfter(preview.Head))
	_, rest, _ = strings.Cut(rest, "\n")
	preview.Tail = rest[:min(max(o.Tail, 0), len(rest))]
	return preview, true
}

// headOf returns at most so many bytes from the beginning of a text: whole lines if that keeps at least half of them,
// otherwise whole characters.
func headOf(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := max(most, 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if lineEnd := strings.LastIndexByte(text[:end], '\n') + 1; lineEnd*2 >= end {
		return text[:lineEnd]
	}
	return text[:end]
}

// tailOf is headOf for the end of a text.
func tailOf(text string, most int) string {
	if len(text) <= most {
		return text
	}
	begin := len(text) - max(most, 0)
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	tail := text[begin:]
	if begin > 0 && text[begin-1] == '\n' {
		return tail
	}
	if lineBegin := strings.IndexByte(tail, '\n') + 1; lineBegin > 0 && lineBegin*2 <= len(tail) {
		return tail[lineBegin:]
	}
	return tail
}
