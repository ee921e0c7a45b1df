// Package command is a model that is a program: it is started for each request, gets the prompt on its stdin or as
// an argument, and what it prints is the answer.
//
// The body is in the protocol "prompt" (internal/wire/prompt). What the program prints on stdout is streamed as it
// comes, as plain text (terminal escapes are taken out). The answer is whole when the program has ended with
// status 0; any other end is an error with the last words of its stderr. When the request ends first, the program
// ends with all that it has started.
//
// Pitfalls: a program that was started may have done things, so that no error is marked as worth a retry. An
// argument can be seen by everybody on the machine, and has a limit; stdin has neither.
package command

import (
	"cmp"
	"time"

	"github.com/continuo-log/continuo/model"
)

// The words in a command that stand for texts of the request.
const (
	PromptPlace = "{prompt}" // the prompt; behind the system messages, unless those have a place of their own
	SystemPlace = "{system}" // the system messages, with empty lines between
)

// Options says what the program is.
type Options struct {
	Name string // of the model
	// Command is the program and its arguments. An argument that is a place, or ends with "=" and a place, gets a
	// text of the request.
	Command []string
	// Argument says that the prompt is an argument, the last one where no PromptPlace is. Default: stdin.
	Argument bool
	Dir      string   // where the program starts. Default: where this process did
	Env      []string // NAME=value, besides PATH, HOME, LANG and TMPDIR of this process
	// Timeout is how long the program may take. Default 10 min.
	Timeout time.Duration
	// MaxOutput is how much the program may print, in bytes. Default 1 MiB.
	MaxOutput int
	// Grace is how long the program may take to go when it is asked to, before it is killed. Default 2 s.
	Grace time.Duration
	// Setting names what an error about the command asks people to correct. Default: the command of NAME.
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

// Info says what the model is. How much it takes is not known.
func (m *Model) Info() model.Info {
	return model.Info{Provider: "command", Name: m.options.Name, Protocol: model.ProtocolPrompt}
}
