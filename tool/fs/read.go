package fs

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

//go:embed read.md
var readDescription string

// readParameters is the JSON Schema of fs.read's arguments.
const readParameters = `{"type":"object","properties":{"path":{"type":"string","description":"A path below @project/ or @state/"},"from_line":{"type":"integer","minimum":1,"description":"First line to read, counted from 1"},"to_line":{"type":"integer","minimum":1,"description":"Last line to read"},"from_byte":{"type":"integer","minimum":0,"description":"First byte to read, counted from 0; not together with lines"},"length":{"type":"integer","minimum":1,"description":"How many bytes to read"}},"required":["path"],"additionalProperties":false}`

// Read is the tool fs.read. It reads only the part of a file that it returns.
type Read struct {
	Roots
	// MaxBytes bounds the bytes of a file that one call returns. Default 6 000, so that a result is shown
	// whole.
	MaxBytes int
}

// Spec describes the tool to a model.
func (r Read) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: "fs.read", Description: r.describe(strings.TrimSpace(readDescription)), Parameters: json.RawMessage(readParameters)}
}

type readArguments struct {
	Path     string `json:"path"`
	FromLine int64  `json:"from_line"`
	ToLine   int64  `json:"to_line"`
	FromByte int64  `json:"from_byte"`
	Length   int64  `json:"length"`
}

func (a readArguments) check() error {
	switch {
	case a.FromLine < 0 || a.ToLine < 0 || a.FromByte < 0 || a.Length < 0:
		return errors.New("lines are counted from 1 and bytes from 0; none is negative")
	case (a.FromLine > 0 || a.ToLine > 0) && (a.FromByte > 0 || a.Length > 0):
		return errors.New("give a range of lines or of bytes, not both")
	case a.ToLine > 0 && a.ToLine < a.FromLine:
		return fmt.Errorf("to_line %d is before from_line %d", a.ToLine, a.FromLine)
	}
	return nil
}

// Repeatable is part of tool.Repeatable: reading changes nothing.
func (Read) Repeatable() bool { return true }

// Run reads a file or a range of it.
func (r Read) Run(ctx context.Context, call tool.Call) tool.Result {
	var arguments readArguments
	err := tool.Decode(call.Arguments, `{"path": "@state/logs/tool-results/call_1.json"}`, &arguments)
	if err == nil {
		err = arguments.check()
	}
	if err != nil {
		return tool.Failure("fs.read: %v", err)
	}
	opened, name, err := r.open(ctx, call, arguments.Path)
	if err != nil {
		return tool.Failure("fs.read %q: %v", arguments.Path, err)
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	shown, where, err := opened.show(ctx, arguments, path.Ext(name), orDefault(r.MaxBytes, 6000))
	if err != nil {
		return tool.Failure("fs.read %q: %v", arguments.Path, err)
	}
	return tool.Result{Outcome: fmt.Sprintf("Read %s (%s)", arguments.Path, where), Content: shown}
}

func orDefault(number, otherwise int) int {
	if number > 0 {
		return number
	}
	return otherwise
}

// show returns the requested range, at most limit bytes of it, with a line on how to read the rest; and a
// description of the range.
func (f *file) show(ctx context.Context, a readArguments, extension string, limit int) (shown, where string, err error) {
	begin, line, err := f.begin(ctx, a)
	if err != nil {
		return "", "", err
	}
	text, err := f.part(begin, limit)
	if err != nil {
		return "", "", err
	}
	if !f.text && bytes.IndexByte(text, 0) >= 0 {
		return "", "", fmt.Errorf("this is a binary file of %d bytes, which cannot be shown as text", f.size)
	}
	skipped := partialHead(text, begin)
	text, begin = text[skipped:], begin+int64(skipped)
	text = text[:a.end(text, begin+int64(len(text)) < f.size, extension)]
	end := begin + int64(len(text))
	shown = strings.ToValidUTF8(string(text), "\uFFFD")
	if end < f.size {
		shown += continuation(text, line, end, f.size)
	}
	return shown, fmt.Sprintf("bytes %d to %d of %d", begin, end, f.size), nil
}

// continuation is the line on how to read the rest.
func continuation(text []byte, line, end, size int64) string {
	where := fmt.Sprintf("from_byte %d", end)
	separator := "\n"
	if bytes.HasSuffix(text, []byte("\n")) {
		separator = ""
		if line > 0 {
			where = fmt.Sprintf("from_line %d", line+int64(bytes.Count(text, []byte("\n"))))
		}
	}
	return fmt.Sprintf("%s[%d of %d bytes are left; continue with %s]", separator, size-end, size, where)
}

// begin returns the first byte of the range and its line, 0 when it is unknown.
func (f *file) begin(ctx context.Context, a readArguments) (begin, line int64, err error) {
	switch {
	case a.FromByte > f.size:
		return 0, 0, fmt.Errorf("from_byte %d is after the end: the file has %d bytes", a.FromByte, f.size)
	case a.FromByte > 0:
		return a.FromByte, 0, nil
	case a.FromLine > 1:
		begin, err = f.seekLine(ctx, a.FromLine)
		return begin, a.FromLine, err
	}
	return 0, 1, nil
}

// seekLine returns where a line begins.
func (f *file) seekLine(ctx context.Context, wanted int64) (int64, error) {
	buffer := make([]byte, 64<<10)
	line := int64(1)
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("the file is long and the time is up at line %d; use from_byte: %w", line, err)
		}
		n, err := f.ReadAt(buffer, at)
		if count := int64(bytes.Count(buffer[:n], []byte("\n"))); line+count < wanted {
			line += count
		} else {
			return at + int64(afterLines(buffer[:n], wanted-line)), nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, reason(err)
		}
		if n == 0 || err != nil {
			return 0, fmt.Errorf("from_line %d is after the end: the file has %d line ends", wanted, line-1)
		}
		at += int64(n)
	}
}

// afterLines returns where count lines of a text end, or its length when it has fewer.
func afterLines(text []byte, count int64) int {
	at := 0
	for ; count > 0; count-- {
		lineEnd := bytes.IndexByte(text[at:], '\n')
		if lineEnd < 0 {
			return len(text)
		}
		at += lineEnd + 1
	}
	return at
}

// part reads at most limit bytes from begin on.
func (f *file) part(begin int64, limit int) ([]byte, error) {
	text := make([]byte, max(0, min(int64(limit), f.size-begin)))
	n, err := f.ReadAt(text, begin)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, reason(err)
	}
	return text[:n], nil
}

// end returns where the range ends in the text that begins it: as requested, or, if the text continues, at a
// meaningful cut.
func (a readArguments) end(text []byte, more bool, extension string) int {
	switch {
	case a.ToLine > 0:
		wanted := a.ToLine - max(a.FromLine, 1) + 1
		if int64(bytes.Count(text, []byte("\n"))) >= wanted {
			return afterLines(text, wanted)
		}
	case a.Length > 0 && a.Length <= int64(len(text)):
		return runeBoundary(text, int(a.Length))
	}
	if !more {
		return len(text)
	}
	return cutAtMeaning(text, extension)
}
