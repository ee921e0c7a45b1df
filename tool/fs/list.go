package fs

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

//go:embed list.md
var listDescription string

// listParameters is the JSON Schema of fs.list's arguments.
const listParameters = `{"type":"object","properties":{"path":{"type":"string","description":"A folder, such as @project/ or @state/logs/tool-results/"},"depth":{"type":"integer","minimum":1,"maximum":20,"description":"How many levels of folders to list. Default 1"},"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"The most lines. Default 200"},"after":{"type":"string","description":"Go on after this name of an earlier listing"}},"required":["path"],"additionalProperties":false}`

// List is the tool fs.list. Its memory use does not depend on the size of the folder.
type List struct {
	Roots
	// MaxBytes bounds the output of one call, in bytes. Default 6 000, so that a result is shown whole.
	MaxBytes int
}

// Spec describes the tool to a model.
func (l List) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: "fs.list", Description: l.describe(strings.TrimSpace(listDescription)), Parameters: json.RawMessage(listParameters)}
}

type listArguments struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
	Limit int    `json:"limit"`
	After string `json:"after"`
}

func (a *listArguments) check() error {
	if err := within("depth", a.Depth, 20); err != nil {
		return err
	}
	if err := within("limit", a.Limit, 1000); err != nil {
		return err
	}
	a.Depth, a.Limit = orDefault(a.Depth, 1), orDefault(a.Limit, 200)
	after, err := cleanName(a.After)
	if err != nil {
		return fmt.Errorf("after: %w", err)
	}
	a.After = after
	return nil
}

// Repeatable is part of tool.Repeatable: reading changes nothing.
func (List) Repeatable() bool { return true }

// Run lists a folder.
func (l List) Run(ctx context.Context, call tool.Call) tool.Result {
	var arguments listArguments
	err := tool.Decode(call.Arguments, `{"path": "@project/", "depth": 2}`, &arguments)
	if err == nil {
		err = arguments.check()
	}
	if err != nil {
		return tool.Failure("fs.list: %v", err)
	}
	below, name, err := l.find(call, arguments.Path)
	if err != nil {
		return tool.Failure("fs.list %q: %v", arguments.Path, err)
	}
	defer below.Close() //nolint:errcheck // nothing was written
	listed := listing{folder: name, lines: arguments.Limit, bytes: orDefault(l.MaxBytes, 6000)}
	if err := listed.read(ctx, below, arguments); err != nil {
		return tool.Failure("fs.list %q: %v", arguments.Path, err)
	}
	return tool.Result{Outcome: fmt.Sprintf("Listed %s (%s)", arguments.Path, nameCount(listed.shown)), Content: listed.content()}
}

// maxCounted bounds how many names a listing counts after the shown ones.
const maxCounted = 10_000

// listing collects the lines of a folder.
type listing struct {
	folder       string
	lines, bytes int // the limits of the output
	text         strings.Builder
	shown, left  int
	full         bool
	last         string // the last name shown
	stopped      bool   // it ended before everything was counted
}

func (l *listing) read(ctx context.Context, below files, a listArguments) error {
	for found, err := range below.walk(ctx, l.folder, a.Depth, a.After) {
		switch {
		case err != nil && ctx.Err() != nil && l.shown > 0:
			l.stopped = true
			return nil
		case err != nil:
			return err
		case found.problem != nil:
			l.add(found, l.relative(found.name)+"/  cannot be opened: "+found.problem.Error())
		default:
			l.add(found, "")
		}
		if l.left > maxCounted {
			l.stopped = true
			return nil
		}
	}
	return nil
}

// add adds an item's line while there is room, and otherwise counts the item.
func (l *listing) add(found item, line string) {
	if l.full || l.shown == l.lines {
		l.full = true
		l.left++
		return
	}
	if line == "" {
		line = l.line(found)
	}
	if l.text.Len()+len(line)+1 > l.bytes && l.shown > 0 {
		l.full = true
		l.left++
		return
	}
	l.text.WriteString(line + "\n")
	l.shown++
	l.last = l.relative(found.name)
}

func (l *listing) relative(name string) string {
	if l.folder == "" || name == l.folder {
		return name
	}
	return strings.TrimPrefix(name, l.folder+"/")
}

func (l *listing) line(found item) string {
	line := visible(l.relative(found.name))
	switch {
	case found.folder:
		return line + "/"
	case found.other != "":
		return line + "  (" + found.other + ")"
	}
	size, err := found.size()
	if err != nil {
		return line + "  (" + err.Error() + ")"
	}
	line += "  " + strconv.FormatInt(size, 10)
	if found.note != "" {
		line += "  " + tool.OneLine(found.note, 100)
	}
	return line
}

// visible returns a name as it is, or quoted if a path cannot contain it.
func visible(name string) string {
	if _, _, err := splitPath(aliasProject + "/" + name); err != nil {
		return strconv.Quote(name) + " (a name that no path can hold)"
	}
	return name
}

func (l *listing) content() string {
	switch {
	case l.shown == 0:
		return "[nothing is here]"
	case l.stopped && l.left > 0:
		fmt.Fprintf(&l.text, "[more than %d more; continue with after %q, or use path to list a folder below]\n", l.left-1, l.last)
	case l.stopped:
		fmt.Fprintf(&l.text, "[the time is up and there may be more; continue with after %q]\n", l.last)
	case l.left > 0:
		fmt.Fprintf(&l.text, "[%d more; continue with after %q, or use path to list a folder below]\n", l.left, l.last)
	}
	return strings.TrimSuffix(l.text.String(), "\n")
}

func nameCount(n int) string {
	if n == 1 {
		return "1 name"
	}
	return fmt.Sprintf("%d names", n)
}
