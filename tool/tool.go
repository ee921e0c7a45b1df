// Package tool holds the words for what a model can call: a [Tool], a [Call] of it and its [Result], and
// a [Set] of tools that finds them by the names that providers allow.
//
// A tool's own name has dots, such as fs.read; providers allow letters, digits, "_" and "-" only, so
// that a rendering names it fs_read and the log keeps what the protocol said.
//
// Pitfalls: Run gets the arguments as the model wrote them, which may be no JSON at all. A tool that
// fails says so in its result; only a program error panics.
package tool

import (
	"context"
	"fmt"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// Tool is something a model can call. It must be safe for concurrent use.
type Tool interface {
	// Spec tells a model about the tool, by its own name.
	Spec() continuo.ToolSpec
	// Run carries out a call. It returns when ctx is done.
	Run(ctx context.Context, call Call) Result
}

// Timed is a Tool that says by itself how long a call may take; 0 leaves it to the turn.
type Timed interface {
	Timeout() time.Duration
}

// Repeatable is a Tool that says whether a call may be made a second time: it changes nothing, or the second call
// changes nothing more. One that does not say is not repeated.
type Repeatable interface {
	Repeatable() bool
}

// IsRepeatable reports whether a tool says that its calls may be made a second time.
func IsRepeatable(t Tool) bool {
	repeatable, ok := t.(Repeatable)
	return ok && repeatable.Repeatable()
}

// Call is one call of a tool.
type Call struct {
	Conversation continuo.Conversation
	ID           string
	Arguments    string // as the model wrote them
	// Since is the seq of the last entry that the caller must not see: a crew was reset there. 0: it may see all.
	Since int64
}

// Result is what a call gave.
type Result struct {
	// Outcome is one line that says what was done, such as "Read config.yml"; it may be empty.
	Outcome string
	// Content is the whole output. What a model is shown of it is for the window to decide.
	Content string
	// File is the alias path of a file of the conversation that the call wrote; the log keeps it as the result's
	// OutputRef. Empty for every other call.
	File string
	// Failed says that the call did not do what it was asked to; Content says why.
	Failed bool
}

// Failure makes the result of a call that failed.
func Failure(format string, args ...any) Result {
	return Result{Content: "error: " + fmt.Sprintf(format, args...), Failed: true}
}

// Source gives the tools that there are at the moment, for one turn. It must be safe for concurrent use.
type Source interface {
	Tools(ctx context.Context) Set
}

// Sources gives the tools of several sources, in their order. Of tools with one name the first counts.
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

// Set is the tools of one turn, in the order in which a model is told of them.
type Set []Tool

// Tools makes a set a source that never changes.
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
