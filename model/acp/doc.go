// Package acp is a model that is an agent which speaks the Agent Client Protocol: JSON-RPC, one message a line, over
// its stdin and stdout. [Model.Stream] starts it for one request, with a session of its own: initialize, session/new,
// session/prompt. [Model.Open] starts it for many: a session that remembers, until it is closed, and that another
// process can go on with where the agent has session/load.
//
// The body is in the protocol "prompt" (internal/wire/prompt). What the agent says is the answer; what it thinks,
// and one line for each tool that it calls, is reasoning. It has its own tools and works in its own folder: it is
// offered neither files nor terminals, and when it asks for permission the settings answer. When the request ends
// first, the turn is cancelled; an agent that does not obey is ended with all that it has started.
//
// The messages are those of github.com/coder/acp-go-sdk; the connection is ours (connection.go), because a slow
// reader must slow the agent down and nothing may be left behind: see docs/adr/0010-acp.md.
//
// Pitfalls: an agent that was started may have done things, so that no error is marked as worth a retry. Lines on
// stdout that are no messages are passed over, and so is all that an agent tells between two prompts. What it tells of
// an earlier turn once a prompt is under way cannot be told from the answer.
package acp

import (
	"cmp"
	"time"

	"github.com/continuo-log/continuo/model"
)

// Options says what the agent is.
type Options struct {
	Name    string   // of the model
	Command []string // the program and its arguments
	Dir     string   // where it starts and works. Default: where this process did
	Env     []string // NAME=value, besides PATH, HOME, LANG and TMPDIR of this process
	// Allow says that the agent gets every permission it asks for. Default: none of them.
	Allow bool
	// Timeout is how long an answer may take, its session's beginning with it where it has one of its own. Default 10 min.
	Timeout time.Duration
	// MaxOutput is how much text and reasoning the answer may have, in bytes. Default 1 MiB.
	MaxOutput int
	// Grace is how long the agent may take to obey when it is asked to cancel, and then to go, before it is killed.
	// Default 2 s.
	Grace time.Duration
	// Version is this program's, for the agent to know. Default "dev".
	Version string
	// Setting names what an error about the command asks people to correct. Default: the command of NAME.
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

// Info says what the model is. How much it takes is not known.
func (m *Model) Info() model.Info { return infoOf(m.options) }

func infoOf(o Options) model.Info {
	return model.Info{Provider: "acp", Name: o.Name, Protocol: model.ProtocolPrompt}
}
