package config

import (
	"time"
)

// ConnectorConfig is one connector of the file: a program that is used as a model. Exactly one of Command and ACP is set.
type ConnectorConfig struct {
	Name    string   // the key under connectors
	Command []string // PromptPlace and SystemPlace in it are optional
	ACP     []string
	Prompt  string // PromptStdin or PromptArgument; only of a command
	Dir     string // "": the working directory of Continuo
	// Env has each ${NAME} replaced, so that it may contain secrets: never show its values.
	Env map[string]string
	// Timeout bounds an answer; with 0 only turn.timeout does, or handoff.agent_timeout for an agent's work on a task.
	Timeout        time.Duration
	MaxOutputBytes int
	Format         string // "text"; only of a command
	Permissions    string // PermissionsDeny or PermissionsAllow; only of an agent over ACP
}

// The ways to pass the prompt to a program.
const (
	PromptStdin    = "stdin"
	PromptArgument = "argument"
)

// The placeholders in a command that texts of the request replace; as in package model/command.
const (
	PromptPlace = "{prompt}"
	SystemPlace = "{system}"
)

// The answers to an agent that asks for a permission.
const (
	PermissionsDeny  = "deny"
	PermissionsAllow = "allow"
)

const connectorsPrefix = "connectors."

// rows lists the settings of one connector, their keys beginning with prefix.
func (c *ConnectorConfig) rows(prefix, home string) []*setting {
	rows := append(c.programRows(prefix, home), []*setting{{
		key: prefix + "timeout", value: optionalDuration(&c.Timeout), phrase: "turn.timeout; handoff.agent_timeout where an agent works on a task",
		doc: "How long one answer may take. turn.timeout holds as well, or, where an agent works on a task, handoff.agent_timeout.",
	}, {
		key: prefix + "max_output_bytes", value: whole(&c.MaxOutputBytes, 1), def: "1048576",
		doc: "How much the program may print, or an agent say and think, in one answer, in bytes. More ends it with an error.",
	}, {
		key: prefix + "format", value: oneOf(&c.Format, "text"), def: "text",
		doc: "What a command prints: plain text. What it prints for a terminal (colours and the like) is taken out.",
	}, {
		key: prefix + "permissions", value: oneOf(&c.Permissions, PermissionsDeny, PermissionsAllow), def: PermissionsDeny,
		doc: "What an agent that speaks ACP is told when it asks whether it may do something. Many agents do some things without asking: bound them by their own settings.",
	}}...)
	for _, row := range rows {
		if row.phrase == "" {
			row.mustRead(row.def)
		}
	}
	return rows
}

func (c *ConnectorConfig) programRows(prefix, home string) []*setting {
	command, agent := commandLine(&c.Command), commandLine(&c.ACP)
	command.allowed = `a list of a program and its arguments, such as [claude, -p] or [some-agent, "--ask={prompt}"]`
	agent.allowed = "a list of a program and its arguments, such as [gemini, --acp]"
	return []*setting{{
		key: prefix + "command", value: command, phrase: "none",
		doc: "A program that is started for each answer, and its arguments; what it prints on stdout is the answer. " +
			"An argument {prompt}, or one that ends with ={prompt}, gets the prompt, and {system} the system messages, which otherwise stand before the prompt. " +
			"Of the environment it gets PATH, HOME, LANG, TMPDIR and what env names.",
	}, {
		key: prefix + "acp", value: agent, phrase: "none",
		doc: "An agent that speaks the Agent Client Protocol over its stdin and stdout, and its arguments, instead of command.",
	}, {
		key: prefix + "prompt", value: oneOf(&c.Prompt, PromptStdin, PromptArgument), phrase: "stdin, or argument where {prompt} stands in the command", example: PromptStdin,
		doc: "How a command gets the prompt. An argument has at most 131071 bytes, and everybody on the machine can see it. argument without {prompt} adds one at the end.",
	}, {
		key: prefix + "dir", value: path(&c.Dir, home, true), def: "",
		doc: "The folder that the program starts and works in. Empty: the one that Continuo was started in.",
	}}
}

func (c *ConnectorConfig) envRow(prefix string) *setting {
	return mappingRow(prefix+"env", &c.Env, "a mapping of names of variables to texts, in which ${NAME} stands for a variable of Continuo's own environment",
		"What the program gets in its environment. Secrets never stand in the file: write ${NAME} for the variable that holds one.")
}
