// Package tool defines what a model can call: a [Tool], a [Call] of it and its [Result], and a [Set] of tools
// that finds them by the names that providers allow.
//
// A tool's own name has dots, such as fs.read; providers allow letters, digits, "_" and "-" only, so the
// renderer names it fs_read, and the log keeps the name that the protocol used.
//
// Pitfalls: Run gets the arguments as the model wrote them, which may be invalid JSON. A tool reports failure
// in its result; it panics only for programming errors.
package tool

import (
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Tool is something a model can call. It must be safe for concurrent use.
type Tool interface {
	// Spec describes the tool to a model, with the tool's own name.
	Spec() continuo.ToolSpec
	// Run executes a call. It returns when ctx is done.
	Run(ctx context.Context, call Call) Result
}

// Timed is a Tool with a time limit of its own for a call; 0 means the turn's limit.
type Timed interface {
	Timeout() time.Duration
}

// Repeatable is a Tool that says whether a call may be repeated: the tool is read-only or idempotent. Calls
// of tools without it are not repeated.
type Repeatable interface {
	Repeatable() bool
}

// ReadOnly is a Tool that says whether its calls change nothing.
type ReadOnly interface {
	ReadOnly() bool
}

// IsReadOnly reports whether a tool's calls change nothing.
func IsReadOnly(t Tool) bool {
	readOnly, ok := t.(ReadOnly)
	return ok && readOnly.ReadOnly()
}

// IsRepeatable reports whether a tool's calls may be repeated.
func IsRepeatable(t Tool) bool {
	repeatable, ok := t.(Repeatable)
	return ok && repeatable.Repeatable()
}

// Call is one call of a tool.
type Call struct {
	Conversation continuo.Conversation
	ID           string
	Arguments    string // as the model wrote them
	// Since is the seq of the last entry that the caller must not see, because a crew was reset there. 0: it
	// may see all.
	Since int64
}

// Result is the result of a call.
type Result struct {
	// Outcome is one line about what was done, such as "Read config.yml"; it may be empty.
	Outcome string
	// Content is the whole output. The window decides which part of it a model is shown.
	Content string
	// File is the alias path of a file of the conversation that the call wrote; the log keeps it as the result's
	// OutputRef. Empty for every other call.
	File string
	// Failed says that the call failed; Content has the reason.
	Failed bool
}

// Failure returns the result of a failed call.
func Failure(format string, args ...any) Result {
	return Result{Content: "error: " + fmt.Sprintf(format, args...), Failed: true}
}

// Source provides the tools currently available, for one turn. It must be safe for concurrent use.
type Source interface {
	Tools(ctx context.Context) Set
}

// Sources provides the tools of several sources, in their order. If tools have the same name, the first is
// used.
type Sources []Source

// Tools is part of Source.
func (s Sources) Tools(ctx context.Context) Set {
	var all Set
	for _, source := range s {
		for _, tool := range source.Tools(ctx) {
			if _, taken := all.Find(tool.Spec().Name); !taken {
				all = append(all, tool)
			}
		}
	}
	return all
}

// Set is the tools of one turn, in the order in which a model is shown them.
type Set []Tool

// Tools makes a set a constant Source.
func (s Set) Tools(context.Context) Set { return s }

// Specs returns the tools' specifications, in order.
func (s Set) Specs() []continuo.ToolSpec {
	specs := make([]continuo.ToolSpec, len(s))
	for i, tool := range s {
		specs[i] = tool.Spec()
	}
	return specs
}

// Find returns the tool of a name.
func (s Set) Find(name string) (Tool, bool) {
	for _, tool := range s {
		if tool.Spec().Name == name {
			return tool, true
		}
	}
	return nil, false
}
