package fs

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

//go:embed search.md
var searchDescription string

// searchParameters is the JSON Schema of fs.search's arguments.
const searchParameters = `{"type":"object","properties":{"pattern":{"type":"string","minLength":1,"description":"A regular expression (RE2), or a text with literal"},"path":{"type":"string","description":"A folder or file. Default the whole project, or @state/ where there is none"},"literal":{"type":"boolean","description":"Take the pattern as it is written"},"ignore_case":{"type":"boolean","description":"Take small and capital letters as the same"},"include":{"type":"string","description":"Only files of such names: *.go, cmd/**/*.md, *.{js,ts}. A pattern with / is matched against the path below the alias"},"max_matches":{"type":"integer","minimum":1,"maximum":500,"description":"The most lines shown. Default 50"},"skip":{"type":"integer","minimum":0,"description":"Pass over so many matches that were shown before"}},"required":["pattern"],"additionalProperties":false}`

// Search is the tool fs.search. Its memory use does not depend on the size of the files.
type Search struct {
	Roots
	// MaxBytes bounds the output of one call, in bytes. Default 6 000, so that a result is shown whole.
	MaxBytes int
	// MaxTime bounds the time of one call, which then reports what it searched. Default 20 s.
	MaxTime time.Duration
}

// Spec describes the tool to a model.
func (s Search) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: "fs.search", Description: s.describe(strings.TrimSpace(searchDescription)), Parameters: json.RawMessage(searchParameters)}
}

type searchArguments struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Literal    bool   `json:"literal"`
	IgnoreCase bool   `json:"ignore_case"`
	Include    string `json:"include"`
	MaxMatches int    `json:"max_matches"`
	Skip       int    `json:"skip"`
}

// maxPattern bounds a pattern, in bytes.
const maxPattern = 1000

// expression compiles the pattern.
func (a searchArguments) expression() (*regexp.Regexp, error) {
	text := a.Pattern
	switch {
	case text == "":
		return nil, errors.New("pattern is empty; give what to look for")
	case len(text) > maxPattern:
		return nil, fmt.Errorf("pattern has %d bytes, more than the limit of %d", len(text), maxPattern)
	case a.Literal:
		text = regexp.QuoteMeta(text)
	}
	if a.IgnoreCase {
		text = "(?i:" + text + ")"
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("pattern is no regular expression of RE2 syntax: %w; correct it, or set literal to true to look for it as it is written", err)
	}
	return compiled, nil
}

// Repeatable is part of tool.Repeatable: reading changes nothing.
func (Search) Repeatable() bool { return true }

// Run searches.
func (s Search) Run(ctx context.Context, call tool.Call) tool.Result {
	var arguments searchArguments
	err := tool.Decode(call.Arguments, `{"pattern": "func main", "path": "@project/", "include": "*.go"}`, &arguments)
	if err != nil {
		return tool.Failure("fs.search: %v", err)
	}
	hunt, err := s.prepare(arguments)
	if err != nil {
		return tool.Failure("fs.search: %v", err)
	}
	if arguments.Path == "" {
		arguments.Path = s.of(call.Conversation).everything()
	}
	below, name, err := s.find(call, arguments.Path)
	if err != nil {
		return tool.Failure("fs.search %q: %v", arguments.Path, err)
	}
	defer below.Close() //nolint:errcheck // nothing was written
	hunt.alias, _, _ = strings.Cut(arguments.Path, "/")
	ctx, cancel := context.WithTimeout(ctx, s.maxTime())
	defer cancel()
	if err := hunt.through(ctx, below, name); err != nil {
		return tool.Failure("fs.search %q: %v", arguments.Path, err)
	}
	return tool.Result{
		Outcome: fmt.Sprintf("Searched %s for %s (%d matches in %d files)", arguments.Path, tool.OneLine(arguments.Pattern, 60), hunt.found, hunt.matched),
		Content: hunt.content(),
	}
}

func (s Search) maxTime() time.Duration {
	if s.MaxTime > 0 {
		return s.MaxTime
	}
	return 20 * time.Second
}

// everything lists where a search without a path looks.
func (r Roots) everything() string {
	if r.ProjectDir == "" {
		return aliasState + "/"
	}
	return aliasProject + "/"
}

func (s Search) prepare(a searchArguments) (*hunt, error) {
	if err := within("max_matches", a.MaxMatches, 500); err != nil {
		return nil, err
	}
	if a.Skip < 0 {
		return nil, fmt.Errorf("skip is %d; allowed is 0 or more", a.Skip)
	}
	expression, err := a.expression()
	if err != nil {
		return nil, err
	}
	include, err := newGlob(a.Include)
	if err != nil {
		return nil, err
	}
	return &hunt{
		expression: expression, include: include, skip: a.Skip,
		lines: orDefault(a.MaxMatches, 50), bytes: orDefault(s.MaxBytes, 6000),
	}, nil
}
