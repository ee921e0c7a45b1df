package config

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// ConnectorConfig is one connector of the file: a program that is used as a model. Exactly one of Command and ACP is set.
type ConnectorConfig struct {
	Name string // the key under connectors
	// PromptPlaceholder and SystemPlaceholder in it are optional
	Command []string `key:"command" kind:"command" allowed:"a list of a program and its arguments, such as [claude, -p] or [some-agent, \"--ask={prompt}\"]" unset:"none" help:"A program that is started for each answer, and its arguments; what it prints on stdout is the answer. An argument {prompt}, or one that ends with ={prompt}, gets the prompt, and {system} the system messages, which are otherwise put before the prompt. Of the environment it gets PATH, HOME, LANG, TMPDIR and what env names."`
	ACP     []string `key:"acp" kind:"command" allowed:"a list of a program and its arguments, such as [gemini, --acp]" unset:"none" help:"An agent that speaks the Agent Client Protocol over its stdin and stdout, and its arguments, instead of command."`
	Prompt  string   `key:"prompt" enum:"stdin,argument" unset:"stdin, or argument if the command contains {prompt}" example:"stdin" help:"How a command gets the prompt. An argument has at most 131071 bytes, and every user of the machine can see it. argument without {prompt} adds one at the end."`
	Dir     string   `key:"dir" kind:"path" empty:"for none" help:"The folder that the program starts and works in. Empty: the one that Continuo was started in."`
	// Timeout bounds an answer; with 0 only turn.timeout does, or handoff.agent_timeout for an agent's work on a task.
	Timeout        time.Duration `key:"timeout" unset:"turn.timeout; handoff.agent_timeout where an agent works on a task" help:"How long one answer may take. turn.timeout holds as well, or, where an agent works on a task, handoff.agent_timeout."`
	MaxOutputBytes int           `key:"max_output_bytes" min:"1" default:"1048576" help:"How much the program may print, or an agent say and think, in one answer, in bytes. More ends it with an error."`
	Format         string        `key:"format" enum:"text" default:"text" help:"What a command prints: plain text. What it prints for a terminal (colours and the like) is taken out."`
	Permissions    string        `key:"permissions" enum:"deny,allow" default:"deny" help:"The answer to an agent that speaks ACP when it asks whether it may do something. Many agents do some things without asking: bound them by their own settings."`
	// Env has each ${NAME} replaced, so that it may contain secrets: never show its values.
	Env map[string]string `key:"env" kind:"variables" unset:"none" help:"What the program gets in its environment. Secrets are never written in the file: write ${NAME} for the variable that holds one."`
}

// The ways to pass the prompt to a program.
const (
	PromptStdin    = "stdin"
	PromptArgument = "argument"
)

// The placeholders in a command that texts of the request replace; as in package model/command.
const (
	PromptPlaceholder = "{prompt}"
	SystemPlaceholder = "{system}"
)

// The answers to an agent that asks for a permission.
const (
	PermissionsDeny  = "deny"
	PermissionsAllow = "allow"
)

// modelConnector is the connector of roles whose texts come from a model; see crew.ConnectorModel.
const modelConnector = "model"

func takenByModels(name string) string {
	if name == modelConnector {
		return "the name model means the settings' models in crews; choose another"
	}
	return takenByDemo(name)
}

func (c *ConnectorConfig) finish(r *fileReader, e *entry, sound bool) {
	if sound {
		c.conflict(r, e)
	}
	e.hintUnset()
	r.config.Connectors[c.Name] = *c
}

// check refuses a connector with the name of a model: a name must be unambiguous.
func (c *ConnectorConfig) check(l *loader, e *entry) {
	if _, taken := l.config.Models[c.Name]; taken {
		l.problems.add(e.at, "connectors.%s: there is a model of that name; choose another", c.Name)
	}
}

// conflict reports conflicts between settings that are each valid, and sets the values that follow from them.
func (c *ConnectorConfig) conflict(r *fileReader, e *entry) {
	if !e.group.needs.check(r, e) {
		return
	}
	command, agent := e.fromFile("command"), e.fromFile("acp")
	others, only := []string{"permissions"}, "acp"
	if agent != nil {
		others, only = []string{"prompt", "format"}, "command"
	}
	r.refuse(e, "only a connector with "+only+" has", others...)
	if agent == nil {
		c.setPrompt(r, command, e.row("prompt"))
	} else if slices.ContainsFunc(c.ACP, hasPlaceholder) {
		r.problems.add(agent.origin, "%s: %s and %s are allowed in a command only; an agent that speaks ACP is sent them", agent.key, PromptPlaceholder, SystemPlaceholder)
	}
}

// promptPlaceholder matches an argument that a text of the request replaces. A text within a longer argument could be interpreted
// by the program that reads it, above all by a shell.
var promptPlaceholder = regexp.MustCompile(`^(?s:.*=)?(?:\{prompt\}|\{system\})$`)

func hasPlaceholder(argument string) bool {
	return strings.Contains(argument, PromptPlaceholder) || strings.Contains(argument, SystemPlaceholder)
}

// setPrompt checks the positions of the placeholders in a command, and sets how it receives the prompt.
func (c *ConnectorConfig) setPrompt(r *fileReader, command, prompt *setting) {
	seen := map[string]int{}
	for i, argument := range c.Command {
		for _, placeholder := range []string{PromptPlaceholder, SystemPlaceholder} {
			seen[placeholder] += strings.Count(argument, placeholder)
		}
		if hasPlaceholder(argument) && (i == 0 || !promptPlaceholder.MatchString(argument) || strings.Count(argument, "{prompt}")+strings.Count(argument, "{system}") > 1) {
			r.problems.add(command.origin, "%s: %s and %s must each be a whole argument, or everything after = in one", command.key, PromptPlaceholder, SystemPlaceholder)
			return
		}
	}
	switch {
	case seen[PromptPlaceholder] > 1 || seen[SystemPlaceholder] > 1:
		r.problems.add(command.origin, "%s: %s and %s are allowed once each", command.key, PromptPlaceholder, SystemPlaceholder)
	case seen[PromptPlaceholder] > 0 && prompt.origin.Kind == FromFile && c.Prompt == PromptStdin:
		r.problems.add(prompt.origin, "%s: %s is in the command, so that the prompt is an argument; leave out one of them", prompt.key, PromptPlaceholder)
	case seen[PromptPlaceholder] > 0:
		prompt.setDefault(PromptArgument)
	default:
		prompt.setDefault(PromptStdin)
	}
}
