// Package acp is a model backed by an agent that speaks the Agent Client Protocol: JSON-RPC, one message a
// line, over its stdin and stdout. [Model.Stream] starts it for one request, with a session of its own:
// initialize, session/new, session/prompt. [Model.Open] starts it for many: the session keeps its context
// until it is closed, and another process can resume it if the agent supports session/load.
//
// The body is in the protocol "prompt" (internal/wire/prompt). The agent's messages are the answer; its
// thoughts, and one line for each tool call, are reasoning. The agent has its own tools and works in its own
// folder: the client offers neither files nor terminals, and the settings answer requests for permission.
// When the request ends first, the turn is cancelled; an agent that does not obey is killed with all
// processes that it started.
//
// The messages are those of github.com/coder/acp-go-sdk; the connection is implemented here (connection.go),
// because a slow reader must slow the agent down and no process may stay behind: see docs/adr/0010-acp.md.
//
// Pitfalls: an agent that was started may have had side effects, so no error is marked as retryable. Invalid
// lines on stdout are ignored, and so are an agent's messages between two prompts. Late messages of an
// earlier turn that arrive during a prompt cannot be distinguished from the answer.
package acp

import (
	"cmp"
	"time"

	"github.com/continuo-log/continuo/model"
)

// Options configures the agent.
type Options struct {
	Name    string   // of the model
	Command []string // the program and its arguments
	Dir     string   // the working directory. Default: that of this process
	Env     []string // NAME=value, besides PATH, HOME, LANG and TMPDIR of this process
	// Allow grants every permission that the agent asks for. Default: none.
	Allow bool
	// Timeout bounds the time of an answer, including the start of a session that is used for one answer.
	// Default 10 min.
	Timeout time.Duration
	// MaxOutput bounds the text and reasoning of an answer, in bytes. Default 1 MiB.
	MaxOutput int
	// Grace is how long the agent may take to obey a cancellation, and then to exit, before it is killed.
	// Default 2 s.
	Grace time.Duration
	// Version is this program's version, sent to the agent. Default "dev".
	Version string
	// Setting names the setting that errors about the command ask users to correct. Default: the command of
	// NAME.
	Setting string
}

// Model is an agent that answers. It is safe for concurrent use.
type Model struct{ options Options }

var _ model.Sessions = (*Model)(nil)

// New makes the model. Nothing is started yet.
func New(options Options) *Model {
	options.Timeout = cmp.Or(options.Timeout, 10*time.Minute)
	options.MaxOutput = cmp.Or(options.MaxOutput, 1<<20)
	options.Grace = cmp.Or(options.Grace, 2*time.Second)
	options.Version = cmp.Or(options.Version, "dev")
	options.Setting = cmp.Or(options.Setting, "the command of "+options.Name)
	return &Model{options: options}
}

// Info describes the model. Its context window is unknown.
func (m *Model) Info() model.Info { return infoOf(m.options) }

func infoOf(o Options) model.Info {
	return model.Info{Provider: "acp", Name: o.Name, Protocol: model.ProtocolPrompt}
}
