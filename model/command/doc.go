// Package command is a model backed by a program: it is started for each request and receives the prompt on
// its stdin or as an argument; its output is the answer.
//
// The body is in the protocol "prompt" (internal/wire/prompt). The program's stdout is streamed as plain text
// (terminal escapes are removed). The answer is complete when the program has exited with status 0; any other
// exit is an error with the end of its stderr. When the request ends first, the program is ended with all
// processes that it started.
//
// Pitfalls: a program that was started may have had side effects, so no error is marked as retryable. Other
// users of the machine can see arguments, which also have a size limit; neither applies to stdin.
package command

import (
	"cmp"
	"time"

	"github.com/continuo-log/continuo/model"
)

// The placeholders for texts of the request in a command.
const (
	PromptPlace = "{prompt}" // the prompt; after the system messages, unless SystemPlace is used
	SystemPlace = "{system}" // the system messages, separated by empty lines
)

// Options configures the program.
type Options struct {
	Name string // of the model
	// Command is the program and its arguments. In an argument that is a placeholder, or ends with "=" and a
	// placeholder, a text of the request replaces the placeholder.
	Command []string
	// Argument says that the prompt is an argument, the last one if there is no PromptPlace. Default: stdin.
	Argument bool
	Dir      string   // the working directory. Default: that of this process
	Env      []string // NAME=value, besides PATH, HOME, LANG and TMPDIR of this process
	// Timeout bounds how long the program may run. Default 10 min.
	Timeout time.Duration
	// MaxOutput bounds the program's output, in bytes. Default 1 MiB.
	MaxOutput int
	// Grace is how long the program may take to exit after it is asked to, before it is killed. Default 2 s.
	Grace time.Duration
	// Setting names the setting that errors about the command ask users to correct. Default: the command of
	// NAME.
	Setting string
}

// Model is a program that answers. It is safe for concurrent use.
type Model struct{ options Options }

// New makes the model. Nothing is started yet.
func New(options Options) *Model {
	options.Timeout = cmp.Or(options.Timeout, 10*time.Minute)
	options.MaxOutput = cmp.Or(options.MaxOutput, 1<<20)
	options.Setting = cmp.Or(options.Setting, "the command of "+options.Name)
	return &Model{options: options}
}

// Info describes the model. Its context window is unknown.
func (m *Model) Info() model.Info {
	return model.Info{Provider: "command", Name: m.options.Name, Protocol: model.ProtocolPrompt}
}
