// Package fs gives models the files of a conversation.
//
// Paths begin with an alias. @state is what Continuo keeps of the conversation that calls: a tool's
// whole output under @state/logs/tool-results/ and a call's whole arguments under
// @state/logs/tool-calls/, both read from the log, so that there is no second copy that could differ.
//
// Pitfalls: a path is never given to the operating system. Ranges count bytes from 0 or lines from 1.
package fs

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

//go:embed read.md
var readDescription string

// readParameters is the JSON Schema of fs.read's arguments.
const readParameters = `{"type":"object","properties":{"path":{"type":"string","description":"A path below @state/logs/"},"from_line":{"type":"integer","minimum":1,"description":"First line to read, counted from 1"},"to_line":{"type":"integer","minimum":1,"description":"Last line to read"},"from_byte":{"type":"integer","minimum":0,"description":"First byte to read, counted from 0"},"length":{"type":"integer","minimum":1,"description":"How many bytes to read"}},"required":["path"],"additionalProperties":false}`

// Read is the tool fs.read.
type Read struct {
	Log *continuo.Log
	// MaxBytes is the most that one call returns. Default 6 000, so that a result is shown whole.
	MaxBytes int
}

// Spec tells a model about the tool.
func (r Read) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: "fs.read", Description: strings.TrimSpace(readDescription), Parameters: json.RawMessage(readParameters)}
}

type readArguments struct {
	Path     string `json:"path"`
	FromLine int    `json:"from_line"`
	ToLine   int    `json:"to_line"`
	FromByte int    `json:"from_byte"`
	Length   int    `json:"length"`
}

// Run reads a file or a range of it.
func (r Read) Run(ctx context.Context, call tool.Call) tool.Result {
	var arguments readArguments
	decoder := json.NewDecoder(strings.NewReader(call.Arguments))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&arguments); err != nil {
		return tool.Failure("fs.read: the arguments must be a JSON object such as {\"path\": \"@state/logs/tool-results/call_1.json\"}: %v", err)
	}
	text, err := r.open(ctx, call.Conversation, arguments.Path)
	if err != nil {
		return tool.Failure("fs.read %s: %v", arguments.Path, err)
	}
	shown, where := cut(text, arguments, r.maxBytes())
	return tool.Result{Outcome: fmt.Sprintf("Read %s (%s)", arguments.Path, where), Content: shown}
}

func (r Read) maxBytes() int {
	if r.MaxBytes > 0 {
		return r.MaxBytes
	}
	return 6000
}

var callPath = regexp.MustCompile(`^@state/logs/tool-calls/(\d{1,18})-(\d{1,4})\.json$`)

// open returns the whole text that a path names in the conversation.
func (r Read) open(ctx context.Context, conversation continuo.Conversation, path string) (string, error) {
	if match := callPath.FindStringSubmatch(path); match != nil {
		return r.openCall(ctx, conversation, match)
	}
	if !strings.HasPrefix(path, "@state/logs/tool-results/") {
		return "", errors.New("there is no such file: paths begin with @state/logs/tool-results/ or @state/logs/tool-calls/")
	}
	entry, err := r.Log.EntryByOutputRef(ctx, conversation, path)
	if errors.Is(err, continuo.ErrNotFound) {
		return "", errors.New("there is no such file in this conversation")
	}
	return entry.Content.String(), err
}

func (r Read) openCall(ctx context.Context, conversation continuo.Conversation, match []string) (string, error) {
	seq, _ := strconv.ParseInt(match[1], 10, 64)
	index, _ := strconv.Atoi(match[2])
	if seq < 1 || seq > conversation.LastSeq {
		return "", errors.New("there is no such file in this conversation")
	}
	for entry, err := range r.Log.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil {
			return "", err
		}
		if index < len(entry.ToolCalls) {
			return entry.ToolCalls[index].Arguments, nil
		}
	}
	return "", errors.New("there is no such file in this conversation")
}

// cut returns the range that was asked for, at most limit bytes of it, never inside a character, with a
// line that tells how to go on; and says in words what range it is.
func cut(text string, a readArguments, limit int) (shown, where string) {
	begin, end := 0, len(text)
	switch {
	case a.FromLine > 0 || a.ToLine > 0:
		begin, end = lineRange(text, max(a.FromLine, 1), a.ToLine)
	case a.FromByte > 0 || a.Length > 0:
		begin = min(a.FromByte, len(text))
		if a.Length > 0 {
			end = min(begin+a.Length, len(text))
		}
	}
	end = min(end, begin+limit)
	for begin < len(text) && !utf8.RuneStart(text[begin]) {
		begin++
	}
	for end > begin && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	shown = text[begin:end]
	if end < len(text) {
		shown += fmt.Sprintf("\n[%d of %d bytes are left; go on with from_byte %d]", len(text)-end, len(text), end)
	}
	return shown, fmt.Sprintf("bytes %d to %d of %d", begin, end, len(text))
}

// lineRange returns where lines from and to (0: the last) begin and end in the text.
func lineRange(text string, from, to int) (begin, end int) {
	begin, end = len(text), len(text)
	line := 1
	if from == 1 {
		begin = 0
	}
	for i := range len(text) {
		if text[i] != '\n' {
			continue
		}
		if line == to {
			return begin, i + 1
		}
		line++
		if line == from {
			begin = i + 1
		}
	}
	return begin, max(begin, end)
}
